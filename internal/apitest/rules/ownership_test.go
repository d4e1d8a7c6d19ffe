package rules

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest"
)

// The refusals of the schema.
const (
	ownershipRemoved = "status.ownership cannot be removed"
	ownershipOneCopy = "status.ownership is for volumes with a kind of replication"
	wishStays        = "a node leaves spec.replicas only when its replica is Gone in status.ownership"
	fallsBack        = "without automatic failover a volume falls back only to the approved snapshot"
	tooManyShares    = "a shared disk has no more attachments than shares"
	headIsEpoch      = "the last epoch of the lineage is the epoch"
	ownerHasEntry    = "the node of a Preparing or Active primary has an entry"
	fencedUnclean    = "a Fenced primary did not unmount cleanly"
	fenceOfOpen      = "a fence is requested for the open epoch only"
	epochDecreased   = "epoch.number cannot decrease"
	epochID          = "epoch.id changes with epoch.number, and only with it"
	epochOpens       = "a new epoch begins Preparing, or Active where the record is mended"
	epochBegins      = "a new epoch begins at the recovery point"
	epochKnows       = "a new epoch knows the epoch before it"
	epochStays       = "within an epoch the lineage and the primary's node and boot stay"
	phaseChart       = "within an epoch the primary goes from Preparing to Active, and from either to Released or Fenced"
	pointFixed       = "the recovery point is set by a release or a fence, and lowered later only with a recorded loss"
	lossPlace        = "within an epoch a loss is recorded by a fence, or where the recovery point is lowered"
	fenceLoses       = "a fence records the loss"
	lossStays        = "a recorded loss stays"
	cleanRelease     = "only a release makes the volume clean"
	keysGrow         = "keys are added one at a time, and only the oldest of eight is forgotten"
	ownedLeaves      = "an entry of status.ownership.replicas leaves only from state Gone"
	ownedBegins      = "an entry of status.ownership.replicas begins Reserved or Syncing"
	ownedChart       = "a replica goes only along the chart of its states"
	ownerStays       = "the replica of the owner is not removed"
	ownedTwice       = "a node has one entry"
)

// The refusals of the policies, to the agent of n1, to controllers and to all others.
var (
	holdsNone    = denied("berth-agent-volumes", "the agent of n3 may write status.ownership only where it counts a replica on its node")
	holdsNoMore  = denied("berth-agent-volumes", "the agent of n1 may write status.ownership only where it counts a replica on its node")
	agentNoPhase = denied("berth-agent-volumes", "the agent of n1 may make only its own epoch Active or Released")
	agentPoint   = denied("berth-agent-volumes", "the agent of n1 may change recovery point, clean and fence request only by releasing its epoch")
	agentLists   = denied("berth-agent-volumes", "within an epoch an agent does not change losses, keys and expiry")
	agentEntry   = denied("berth-agent-volumes", "the agent of n1 may change only its own entry of status.ownership.replicas, and neither removes it nor adds it")
	agentFar     = denied("berth-agent-volumes", "an agent begins an epoch at most 1000000 above the last")
	agentBegins  = denied("berth-agent-volumes", "a new epoch changes no entry, and adds only those of its primary and of the agent's node")
	agentAgrees  = denied("berth-agent-volumes", "only a person approves the loss of data")
	ctlAgrees    = denied("berth-volume-ownership", "only a person approves the loss of data")
	ctlPhase     = denied("berth-volume-ownership", "within an epoch a controller makes the primary Fenced and nothing else")
	ctlAsks      = denied("berth-volume-ownership", "without automatic failover only a person asks for a fence")
	ctlEntry     = denied("berth-volume-ownership", "a controller reserves a replica, marks it Removing, or counts on it again, and ends an attachment without a writer; the rest of an entry is its node's")
	ctlBegins    = denied("berth-volume-ownership", "a new epoch changes no entry, and adds only that of its primary")
	onlyBerth    = denied("berth-volume-ownership", "only Berth writes status.ownership of a Volume; a person may write its fields approved and fenceRequest")
)

func replicated(v *v1alpha1.Volume) {
	v.Spec.Replication.Kind = v1alpha1.ReplicationSnapshots
	v.Spec.Replication.Failover = &v1alpha1.Failover{Automatic: true, MaxDataLoss: &metav1.Duration{Duration: 5e9}}
}

func shared(v *v1alpha1.Volume) {
	replicated(v)
	v.Spec.Replication.Kind = v1alpha1.ReplicationAttachments
	v.Spec.Replication.Attachments = &v1alpha1.Attachments{MaxShares: 2, Persistent: true}
}

func manual(v *v1alpha1.Volume) {
	replicated(v)
	v.Spec.Replication.Failover = nil
}

func manualDisk(v *v1alpha1.Volume) {
	shared(v)
	v.Spec.Replication.Failover = nil
}

func at(number, seq int64) *v1alpha1.Point { return &v1alpha1.Point{Epoch: nth(number), Seq: seq} }

func nth(number int64) v1alpha1.Epoch {
	return v1alpha1.Epoch{Number: number, ID: fmt.Sprintf("random-%d", number)}
}

// recorded is an Active volume: epoch 5 of n1 began where epoch 1 ended.
func recorded(v *v1alpha1.Volume) {
	v.Status.Ownership = &v1alpha1.Ownership{
		Epoch: nth(5), Primary: v1alpha1.Primary{Node: "n1", Boot: "boot-1", Phase: v1alpha1.PrimaryActive}, RecoveryPoint: at(1, 3),
		Lineage:  []v1alpha1.Branch{{Epoch: nth(1)}, {Epoch: nth(5), From: at(1, 3)}},
		Replicas: []v1alpha1.OwnedReplica{{Node: "n1", State: v1alpha1.OwnedReady, Point: at(5, 6)}, {Node: "n2", State: v1alpha1.OwnedReady, Point: at(5, 5)}},
	}
}

// attached is the same of a shared disk.
func attached(v *v1alpha1.Volume) {
	recorded(v)
	o := v.Status.Ownership
	o.RecoveryPoint, o.Lineage[1].From, o.Replicas[0].Point, o.Replicas[1].Point = nil, nil, nil, nil
	o.Keys = []v1alpha1.ReservationKey{{Node: "n1", Epoch: nth(5)}}
}

// complete has every field.
func complete(v *v1alpha1.Volume) {
	attached(v)
	o, epoch, now := v.Status.Ownership, nth(5), metav1.Unix(1, 0)
	o.RecoveryPoint, o.Approved, o.Lineage[1].From = at(1, 3), at(1, 3), at(1, 3)
	o.Losses = []v1alpha1.Loss{{Epoch: nth(1), Kept: *at(1, 3), Known: at(1, 4)}}
	o.Keys = append(o.Keys, v1alpha1.ReservationKey{Node: "n2", Epoch: epoch, Fence: true})
	o.FenceRequest, o.ExpireAt = &v1alpha1.FenceRequest{Executor: "n2", Epoch: epoch}, &now
	o.Writers = []v1alpha1.Writer{{Node: "n1", Boot: "boot-1", Phase: v1alpha1.PrimaryActive, Epoch: epoch, FenceRequest: o.FenceRequest}}
	o.Replicas[0] = v1alpha1.OwnedReplica{Node: "n1", State: v1alpha1.OwnedReady, Point: at(5, 6), Unstaged: &epoch, Fenced: &epoch, Tries: 1, RetryAt: &now}
}

// owns edits the record.
func owns(edit func(o *v1alpha1.Ownership)) change {
	return func(v *v1alpha1.Volume) { edit(v.Status.Ownership) }
}

func ended(p v1alpha1.PrimaryPhase) change {
	return owns(func(o *v1alpha1.Ownership) { o.Primary.Phase = p })
}

// fell is a fence: n1 is fenced, and the volume falls back to a snapshot.
func fell(seq int64) change {
	return owns(func(o *v1alpha1.Ownership) {
		o.Primary.Phase, o.RecoveryPoint = v1alpha1.PrimaryFenced, at(5, seq)
		o.Losses = append(o.Losses, v1alpha1.Loss{Epoch: nth(5), Kept: *at(5, seq), Known: at(5, 6)})
	})
}

// takenBy is a new epoch of a node.
func takenBy(node string, number int64) change {
	return owns(func(o *v1alpha1.Ownership) {
		o.Epoch, o.Primary, o.FenceRequest = nth(number), v1alpha1.Primary{Node: node, Boot: "boot-2", Phase: v1alpha1.PrimaryPreparing}, nil
		o.Lineage = append(o.Lineage, v1alpha1.Branch{Epoch: nth(number), From: o.RecoveryPoint})
	})
}

func counted(node string, s v1alpha1.OwnedState) change {
	return owns(func(o *v1alpha1.Ownership) {
		for i := range o.Replicas {
			if o.Replicas[i].Node == node {
				o.Replicas[i].State = s
				return
			}
		}
		o.Replicas = append(o.Replicas, v1alpha1.OwnedReplica{Node: node, State: s})
	})
}

func uncounted(o *v1alpha1.Ownership) { o.Replicas = o.Replicas[:1] }

func agreed(v *v1alpha1.Volume) { v.Status.Ownership.Approved = at(5, 5) }

func eightLosses(v *v1alpha1.Volume) {
	for i := range int64(8) {
		v.Status.Ownership.Losses = append(v.Status.Ownership.Losses, v1alpha1.Loss{Epoch: nth(1), Kept: *at(1, i+1)})
	}
}

func unstagedIn(node string, number int64) change {
	return owns(func(o *v1alpha1.Ownership) {
		for i := range o.Replicas {
			if e := nth(number); o.Replicas[i].Node == node {
				o.Replicas[i].Unstaged = &e
			}
		}
	})
}

var released = owns(func(o *v1alpha1.Ownership) {
	o.Primary.Phase, o.Clean, o.RecoveryPoint = v1alpha1.PrimaryReleased, true, at(5, 6)
})

var (
	preparing = ended(v1alpha1.PrimaryPreparing)
	fenced    = ended(v1alpha1.PrimaryFenced)
)

// ownershipCase is one request to write a record.
type ownershipCase struct {
	volume  change // of the spec: replicated, if nil
	before  change // edits recorded, or attached for a shared disk
	by      string // an agent's node, controller, scheduler or person
	change  change
	refusal string
}

const (
	byController = "controller"
	byScheduler  = "scheduler"
	byPerson     = "person"
)

var ownershipCases = map[string]ownershipCase{
	// An agent, in the epoch that it owns, and in others.
	"an owner becomes active":                {before: preparing, by: "n1", change: ended(v1alpha1.PrimaryActive)},
	"an owner releases":                      {by: "n1", change: all(released, unstagedIn("n1", 5))},
	"an owner gives an unused epoch up":      {before: preparing, by: "n1", change: ended(v1alpha1.PrimaryReleased)},
	"an agent reports":                       {by: "n2", change: counted("n2", v1alpha1.OwnedLagging)},
	"an agent says that its replica is gone": {before: counted("n2", v1alpha1.OwnedRemoving), by: "n2", change: counted("n2", v1alpha1.OwnedGone)},
	"an agent shuts the owner out while its replica goes": {volume: shared, before: counted("n2", v1alpha1.OwnedRemoving), by: "n2",
		change: owns(func(o *v1alpha1.Ownership) { e := nth(5); o.Replicas[1].Fenced = &e })},
	"an agent takes a released volume": {before: released, by: "n2", change: takenBy("n2", 6)},
	"an agent takes a fenced volume":   {before: fell(5), by: "n2", change: takenBy("n2", 1000005)},
	"an agent mends a record from a backup": {by: "n2", change: all(takenBy("n1", 9),
		ended(v1alpha1.PrimaryActive))},
	"an agent mends a record that has no entry for the owner": {before: all(released, owns(uncounted)), by: "n1",
		change: all(takenBy("n2", 9), counted("n2", v1alpha1.OwnedSyncing))},
	"an agent fences the owner":                {by: "n1", before: owns(func(o *v1alpha1.Ownership) { o.Primary.Node = "n2" }), change: fell(5), refusal: agentNoPhase},
	"an agent fences itself":                   {by: "n1", change: fell(5), refusal: agentNoPhase},
	"an agent releases for the owner":          {by: "n1", before: owns(func(o *v1alpha1.Ownership) { o.Primary.Node = "n2" }), change: released, refusal: agentNoPhase},
	"an agent moves the recovery point":        {by: "n1", change: owns(func(o *v1alpha1.Ownership) { o.RecoveryPoint = at(1, 2) }), refusal: pointFixed},
	"an agent calls the volume clean":          {by: "n1", change: owns(func(o *v1alpha1.Ownership) { o.Clean = true }), refusal: cleanRelease},
	"an agent forgets a loss":                  {before: eightLosses, by: "n1", change: owns(func(o *v1alpha1.Ownership) { o.Losses = nil }), refusal: lossPlace},
	"an agent changes the expiry":              {by: "n1", change: owns(func(o *v1alpha1.Ownership) { o.ExpireAt = &metav1.Time{Time: metav1.Unix(1, 0).Time} }), refusal: agentLists},
	"an agent reports for another":             {by: "n1", change: counted("n2", v1alpha1.OwnedLagging), refusal: agentEntry},
	"an agent removes another's replica":       {by: "n1", change: counted("n2", v1alpha1.OwnedRemoving), refusal: agentEntry},
	"an agent removes its own replica":         {by: "n1", before: released, change: counted("n1", v1alpha1.OwnedRemoving), refusal: agentEntry},
	"an agent drops its own entry":             {by: "n1", before: all(released, counted("n1", v1alpha1.OwnedGone)), change: owns(func(o *v1alpha1.Ownership) { o.Replicas = o.Replicas[1:] }), refusal: agentEntry},
	"an agent reserves a replica":              {by: "n1", change: counted("n4", v1alpha1.OwnedReserved), refusal: agentEntry},
	"an agent uses the numbers up":             {before: released, by: "n1", change: takenBy("n1", 1000006), refusal: agentFar},
	"an agent changes an entry with an epoch":  {before: released, by: "n1", change: all(takenBy("n1", 6), counted("n2", v1alpha1.OwnedLagging)), refusal: agentBegins},
	"an agent adds a third node with an epoch": {before: released, by: "n1", change: all(takenBy("n1", 6), counted("n4", v1alpha1.OwnedSyncing)), refusal: agentBegins},
	"an agent approves":                        {by: "n1", change: agreed, refusal: agentAgrees},
	"an agent changes the fence request": {volume: shared, by: "n1", refusal: agentPoint,
		change: owns(func(o *v1alpha1.Ownership) { o.FenceRequest = &v1alpha1.FenceRequest{Executor: "n2", Epoch: nth(5)} })},
	// An agent whose node has no replica.
	"a stranger takes a released volume": {before: released, by: "n3", change: takenBy("n3", 6), refusal: ownerHasEntry},
	"a stranger mends a record":          {by: "n3", change: takenBy("n1", 9), refusal: holdsNone},
	"a stranger adds itself":             {by: "n3", change: counted("n3", v1alpha1.OwnedReserved), refusal: holdsNone},
	"a stranger reports for another":     {by: "n3", change: counted("n2", v1alpha1.OwnedLagging), refusal: holdsNone},
	"a stranger releases for the owner":  {by: "n3", change: released, refusal: holdsNone},
	"a stranger whose replica was dropped reports": {before: all(released, owns(func(o *v1alpha1.Ownership) { o.Replicas = o.Replicas[1:] })), by: "n1",
		change: counted("n2", v1alpha1.OwnedLagging), refusal: holdsNoMore},
	"a stranger takes the record away": {by: "n3", change: func(v *v1alpha1.Volume) { v.Status.Ownership = nil }, refusal: ownershipRemoved},
	// A controller.
	"a controller fences": {by: byController, change: fell(5)},
	"a controller lowers the recovery point": {before: fell(5), by: byController, change: owns(func(o *v1alpha1.Ownership) {
		o.RecoveryPoint, o.Losses = at(5, 4), append(o.Losses, v1alpha1.Loss{Epoch: nth(5), Kept: *at(5, 4), Known: at(5, 5)})
	})},
	"a controller reserves a replica":                {by: byController, change: counted("n4", v1alpha1.OwnedReserved)},
	"a controller marks a replica":                   {by: byController, change: counted("n2", v1alpha1.OwnedRemoving)},
	"a controller counts on a replica again":         {before: counted("n2", v1alpha1.OwnedRemoving), by: byController, change: counted("n2", v1alpha1.OwnedSyncing)},
	"a controller ends an attachment":                {volume: shared, before: counted("n2", v1alpha1.OwnedRemoving), by: byController, change: counted("n2", v1alpha1.OwnedGone)},
	"a controller ends a writer's attachment":        {volume: shared, before: counted("n1", v1alpha1.OwnedRemoving), by: byController, change: counted("n1", v1alpha1.OwnedGone), refusal: ctlEntry},
	"a controller drops an entry":                    {before: counted("n2", v1alpha1.OwnedGone), by: byController, change: owns(uncounted)},
	"a controller mends a record":                    {by: byController, change: takenBy("n2", 9)},
	"a controller requests a fence":                  {volume: shared, by: byController, change: asksFor("n2")},
	"a controller requests a fence of a manual disk": {volume: manualDisk, by: byController, change: asksFor("n2"), refusal: ctlAsks},
	"a controller asks another standby to shut the writer of a manual disk out": {volume: manualDisk,
		before: all(counted("n3", v1alpha1.OwnedReady), asksFor("n3")), by: byController, change: asksFor("n2")},
	"a controller makes an owner active":               {before: preparing, by: byController, change: ended(v1alpha1.PrimaryActive), refusal: ctlPhase},
	"a controller releases":                            {by: byController, change: released, refusal: ctlPhase},
	"a controller reports for a node":                  {by: byController, change: counted("n2", v1alpha1.OwnedLagging), refusal: ctlEntry},
	"a controller says that a replica is gone":         {before: counted("n2", v1alpha1.OwnedRemoving), by: byController, change: counted("n2", v1alpha1.OwnedGone), refusal: ctlEntry},
	"a controller makes the proof that a node stopped": {by: byController, change: unstagedIn("n1", 5), refusal: ctlEntry},
	"a controller changes an entry with an epoch":      {before: released, by: byController, change: all(takenBy("n2", 6), counted("n1", v1alpha1.OwnedLagging)), refusal: ctlBegins},
	"a controller approves":                            {by: byController, change: agreed, refusal: ctlAgrees},
	"a controller takes the record away":               {by: byController, change: func(v *v1alpha1.Volume) { v.Status.Ownership = nil }, refusal: ownershipRemoved},
	// All others.
	"a person approves":               {by: byPerson, change: agreed},
	"a person takes an approval back": {before: agreed, by: byPerson, change: owns(func(o *v1alpha1.Ownership) { o.Approved = nil })},
	"a person fences":                 {by: byPerson, change: fell(5), refusal: onlyBerth},
	"a person takes the record away":  {by: byPerson, change: func(v *v1alpha1.Volume) { v.Status.Ownership = nil }, refusal: ownershipRemoved},
	"a scheduler marks a replica":     {by: byScheduler, change: counted("n2", v1alpha1.OwnedRemoving), refusal: onlyBerth},
	// The rules of the schema bind every writer.
	"a volume with one copy has no record":     {volume: all(), before: func(v *v1alpha1.Volume) { v.Status.Ownership = nil }, by: byController, change: recorded, refusal: ownershipOneCopy},
	"the head of the lineage is another epoch": {by: byController, change: owns(func(o *v1alpha1.Ownership) { o.Lineage = o.Lineage[:1] }), refusal: headIsEpoch},
	"an owner has no entry":                    {by: byController, change: all(counted("n1", v1alpha1.OwnedGone), owns(func(o *v1alpha1.Ownership) { o.Replicas = o.Replicas[1:] })), refusal: ownerHasEntry},
	"a fence leaves the volume clean":          {by: byController, before: owns(func(o *v1alpha1.Ownership) { o.Clean = true }), change: fell(5), refusal: fencedUnclean},
	"a fence of an old epoch is requested": {volume: shared, by: byController, refusal: fenceOfOpen,
		change: owns(func(o *v1alpha1.Ownership) { o.FenceRequest = &v1alpha1.FenceRequest{Executor: "n2", Epoch: nth(1)} })},
	"an epoch decreases":                       {before: released, by: "n1", change: takenBy("n1", 4), refusal: epochDecreased},
	"an id serves two epochs":                  {before: released, by: "n1", change: all(takenBy("n1", 6), owns(func(o *v1alpha1.Ownership) { o.Epoch.ID, o.Lineage[2].Epoch.ID = "random-5", "random-5" })), refusal: epochID},
	"a number serves two epochs":               {before: released, by: "n1", change: all(takenBy("n1", 5), owns(func(o *v1alpha1.Ownership) { o.Epoch.ID, o.Lineage[2].Epoch.ID = "another", "another" })), refusal: epochID},
	"an epoch begins released":                 {before: released, by: "n1", change: all(takenBy("n1", 6), ended(v1alpha1.PrimaryReleased)), refusal: epochOpens},
	"an epoch begins elsewhere":                {before: released, by: "n1", change: all(takenBy("n1", 6), owns(func(o *v1alpha1.Ownership) { o.Lineage[2].From = at(5, 4) })), refusal: epochBegins},
	"an epoch forgets the one before":          {before: released, by: "n1", change: all(takenBy("n1", 6), owns(func(o *v1alpha1.Ownership) { o.Lineage = o.Lineage[2:] })), refusal: epochKnows},
	"the lineage changes within an epoch":      {by: byController, change: owns(func(o *v1alpha1.Ownership) { o.Lineage[1].From = at(1, 2) }), refusal: epochStays},
	"the primary moves within an epoch":        {before: ended(v1alpha1.PrimaryReleased), by: byController, change: all(fenced, owns(func(o *v1alpha1.Ownership) { o.Primary.Node = "n2" })), refusal: epochStays},
	"a released primary is fenced":             {before: ended(v1alpha1.PrimaryReleased), by: byController, change: fell(5), refusal: phaseChart},
	"an active primary prepares again":         {by: "n1", change: preparing, refusal: phaseChart},
	"the recovery point rises":                 {before: fell(5), by: byController, change: owns(func(o *v1alpha1.Ownership) { o.RecoveryPoint = at(5, 6) }), refusal: pointFixed},
	"the recovery point is lowered in silence": {before: fell(5), by: byController, change: owns(func(o *v1alpha1.Ownership) { o.RecoveryPoint = at(5, 4) }), refusal: pointFixed},
	"a loss without a fence":                   {by: byController, change: owns(func(o *v1alpha1.Ownership) { o.Losses = []v1alpha1.Loss{{Epoch: nth(5), Kept: *at(5, 4)}} }), refusal: lossPlace},
	"a fence without a loss":                   {by: byController, change: fenced, refusal: fenceLoses},
	"a fence drops a loss":                     {before: eightLosses, by: byController, change: all(owns(func(o *v1alpha1.Ownership) { o.Losses = nil }), fell(5)), refusal: lossStays},
	"a fence drops the oldest of eight":        {before: eightLosses, by: byController, change: all(owns(func(o *v1alpha1.Ownership) { o.Losses = o.Losses[1:] }), fell(5))},
	"a takeover makes the volume clean":        {before: fell(5), by: "n2", change: all(takenBy("n2", 6), owns(func(o *v1alpha1.Ownership) { o.Clean = true })), refusal: cleanRelease},
	"a key is forgotten":                       {volume: shared, by: byController, change: owns(func(o *v1alpha1.Ownership) { o.Keys = nil }), refusal: keysGrow},
	"an entry leaves too early":                {by: byController, change: owns(uncounted), refusal: ownedLeaves},
	"an entry begins ready":                    {before: released, by: byController, change: all(takenBy("n3", 6), counted("n3", v1alpha1.OwnedReady)), refusal: ownedBegins},
	"a new entry is ready":                     {before: owns(uncounted), by: byController, change: counted("n2", v1alpha1.OwnedRemoving), refusal: ownedBegins},
	"a replica leaves the chart":               {by: "n2", change: counted("n2", v1alpha1.OwnedGone), refusal: ownedChart},
	"an owner's replica is removed":            {by: byController, change: counted("n1", v1alpha1.OwnedRemoving), refusal: ownerStays},
	"a node has two entries": {by: byController, change: owns(func(o *v1alpha1.Ownership) {
		o.Replicas = append(o.Replicas, v1alpha1.OwnedReplica{Node: "n4", State: v1alpha1.OwnedReserved}, v1alpha1.OwnedReplica{Node: "n4", State: v1alpha1.OwnedReserved})
	}), refusal: ownedTwice},
	"a manual volume falls back by itself":   {volume: manual, by: byController, change: fell(5), refusal: fallsBack},
	"a manual volume falls back as approved": {volume: manual, before: agreed, by: byController, change: fell(5)},
	"a manual volume falls back to where its epoch began": {volume: manual, by: byController, refusal: fallsBack, change: owns(func(o *v1alpha1.Ownership) {
		o.Primary.Phase, o.Losses = v1alpha1.PrimaryFenced, []v1alpha1.Loss{{Epoch: nth(5), Kept: *at(1, 3)}}
	})},
	"a manual volume falls back further": {volume: manual, before: agreed, by: byController, change: fell(4), refusal: fallsBack},
	"more attachments than shares":       {volume: shared, by: byController, change: counted("n4", v1alpha1.OwnedReserved), refusal: tooManyShares},
	// Hostile sizes.
	"an endless id": {before: released, by: "n1", change: all(takenBy("n1", 6), owns(func(o *v1alpha1.Ownership) { o.Primary.Boot = strings.Repeat("x", 65) })), refusal: "status.ownership.primary.boot"},
	"an endless lineage": {before: released, by: "n1", change: all(takenBy("n1", 6), owns(func(o *v1alpha1.Ownership) {
		o.Lineage = append(make([]v1alpha1.Branch, 31), o.Lineage[1:]...)
		for i := range 31 {
			o.Lineage[i].Epoch = nth(int64(i + 10))
		}
	})), refusal: "must have at most 32 items"},
	"endless tries":                {by: "n1", change: owns(func(o *v1alpha1.Ownership) { o.Replicas[0].Tries = 1000001 }), refusal: "status.ownership.replicas[0].tries"},
	"a number beyond a disk's key": {before: released, by: byController, change: takenBy("n1", 1<<30), refusal: "status.ownership.epoch.number"},
}

func TestTheRecordOfOwnershipIsWrittenOnlyAsTheRulesWriteIt(t *testing.T) {
	isWrittenSo(t, ownershipCases)
}

func isWrittenSo(t *testing.T, cases map[string]ownershipCase) {
	env := apitest.Start(t)
	writers := map[string]client.Client{byController: env.Controller(t), byScheduler: env.Scheduler(t), byPerson: env.Client}
	for _, node := range []string{"n1", "n2", "n3"} {
		writers[node] = env.Agent(t, node)
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			kind, steps := tc.volume, []change{recorded}
			if kind == nil {
				kind = replicated
			}
			v := newVolume(t, kind)
			if v.Spec.Replication.Attachments != nil {
				steps[0] = attached
			}
			if tc.before != nil {
				steps[0] = all(steps[0], tc.before)
			}
			v = live(t, writers[byController], v, steps...)
			before := v.DeepCopy()
			tc.change(v)
			expect(t, writers[tc.by].Status().Update(t.Context(), v), tc.refusal)
			if tc.refusal != "" {
				unchanged(t, env.Client, before)
			}
		})
	}
}

func TestANodeLeavesTheWishesOnlyAfterItsReplicaIsGone(t *testing.T) {
	env := apitest.Start(t)
	v := live(t, env.Controller(t), newVolume(t, replicated), recorded)
	gone := v.DeepCopy()
	wanted("n1")(v)
	expect(t, env.Client.Update(t.Context(), v), wishStays)
	counted("n2", v1alpha1.OwnedRemoving)(gone)
	if err := env.Controller(t).Status().Update(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	counted("n2", v1alpha1.OwnedGone)(gone)
	if err := env.Agent(t, "n2").Status().Update(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	wanted("n1")(gone)
	expect(t, env.Client.Update(t.Context(), gone), "")
}
