package rules

import (
	"strings"
	"testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest"
)

const (
	epochRemoved    = "status.epoch cannot be removed"
	epochDecreased  = "epoch.number cannot decrease"
	epochID         = "epoch.id changes with epoch.number, and only with it"
	epochAlone      = "epoch and primary come together"
	epochPreparing  = "a new epoch begins with a Preparing primary"
	epochReady      = "a new epoch needs a ready replica on the node of its primary"
	withinEpoch     = "within an epoch the primary keeps its node and goes from Preparing to Active, and from either to Released or Fenced"
	primaryMoves    = "primary moves to another node only from Released or Fenced"
	primaryWanted   = "the node of a Preparing or Active primary must be in spec.replicas"
	entryLeaves     = "an entry of status.replicas leaves only from state Gone"
	readyEntry      = "a ready replica is in state Ready and reports its capacity"
	unstagedLowered = "unstagedEpoch cannot decrease"
)

type statusCase struct {
	before  []change // writes that lead to the state before
	change  change
	refusal string // empty: allowed
}

var epochCases = map[string]statusCase{
	"the first epoch begins with a preparing primary": {
		before: []change{ready("n1", "n2")}, change: epoch("n1", 1)},
	"a report and the first epoch may come in one write": {
		change: all(ready("n1"), epoch("n1", 1))},
	"a first epoch cannot begin active": {
		before: []change{ready("n1")}, change: all(epoch("n1", 1), active("n1")), refusal: epochPreparing},
	"a later epoch cannot begin active": {
		before: []change{ready("n1"), epoch("n1", 1), released("n1")}, change: all(epoch("n1", 2), active("n1")), refusal: epochPreparing},
	"a first epoch cannot begin on a failed replica": {
		before: []change{ready("n2"), failed("n1")}, change: epoch("n1", 1), refusal: epochReady},
	"a first epoch cannot begin without any report": {
		change: epoch("n1", 1), refusal: epochReady},
	"a later epoch cannot begin on a replica that stopped being ready": {
		before: []change{ready("n1"), epoch("n1", 1), released("n1"), failed("n1")}, change: epoch("n1", 2), refusal: epochReady},
	"a node that should hold no replica cannot become primary": {
		before: []change{ready("n3")}, change: epoch("n3", 1), refusal: primaryWanted},
	"an epoch cannot begin on a replica that is being copied": {
		before: []change{all(ready("n1"), copying("n1"))}, change: epoch("n1", 1), refusal: epochReady},
	"an epoch cannot come without a primary": {
		before: []change{ready("n1")}, change: numbered(1), refusal: epochAlone},
	"a primary cannot come without an epoch": {
		before: []change{ready("n1")}, change: phase("n1", v1alpha1.PrimaryPreparing), refusal: epochAlone},
	"an epoch may skip numbers that were promised on other nodes": {
		before: []change{ready("n1"), epoch("n1", 1), released("n1")}, change: epoch("n1", 9)},
	"an epoch cannot decrease": {
		before: []change{ready("n1"), epoch("n1", 5), released("n1")}, change: epoch("n1", 4), refusal: epochDecreased},
	"an epoch cannot change the id": {
		before: []change{ready("n1"), epoch("n1", 5)}, refusal: epochID,
		change: func(v *v1alpha1.Volume) { v.Status.Epoch.ID = "somebody-else" }},
	"an id cannot serve two epochs": {
		before: []change{ready("n1"), epoch("n1", 5)}, refusal: epochID,
		change: func(v *v1alpha1.Volume) { v.Status.Epoch.Number = 6 }},
	"epoch and primary cannot be removed": {
		before: []change{ready("n1"), epoch("n1", 1)}, refusal: epochRemoved,
		change: func(v *v1alpha1.Volume) { v.Status.Epoch, v.Status.Primary = nil, nil }},
	"the primary alone cannot be removed": {
		before: []change{ready("n1"), epoch("n1", 1)}, refusal: epochAlone,
		change: func(v *v1alpha1.Volume) { v.Status.Primary = nil }},
}

var primaryCases = map[string]statusCase{
	"preparing becomes active": {
		before: []change{ready("n1"), epoch("n1", 1)}, change: active("n1")},
	"preparing is given up": {
		before: []change{ready("n1"), epoch("n1", 1)}, change: released("n1")},
	"preparing is fenced": {
		before: []change{ready("n1"), epoch("n1", 1)}, change: fenced("n1")},
	"active is released": {
		before: []change{ready("n1"), epoch("n1", 1), active("n1")}, change: released("n1")},
	"active is fenced": {
		before: []change{ready("n1"), epoch("n1", 1), active("n1")}, change: fenced("n1")},
	"active does not go back to preparing in the same epoch": {
		before: []change{ready("n1"), epoch("n1", 1), active("n1")}, change: phase("n1", v1alpha1.PrimaryPreparing), refusal: withinEpoch},
	"released does not become active in the same epoch": {
		before: []change{ready("n1"), epoch("n1", 1), released("n1")}, change: active("n1"), refusal: withinEpoch},
	"a released primary is not fenced afterwards": {
		before: []change{ready("n1"), epoch("n1", 1), released("n1")}, change: fenced("n1"), refusal: withinEpoch},
	"a fenced primary is not released afterwards": {
		before: []change{ready("n1"), epoch("n1", 1), fenced("n1")}, change: released("n1"), refusal: withinEpoch},
	"the primary does not move within an epoch": {
		before: []change{ready("n1", "n2"), epoch("n1", 1), released("n1")}, change: released("n2"), refusal: withinEpoch},
	"a released primary moves to another node": {
		before: []change{ready("n1", "n2"), epoch("n1", 1), released("n1")}, change: epoch("n2", 2)},
	"a fenced primary moves to another node": {
		before: []change{ready("n1", "n2"), epoch("n1", 1), active("n1"), fenced("n1")}, change: epoch("n2", 2)},
	"a preparing primary does not move": {
		before: []change{ready("n1", "n2"), epoch("n1", 1)}, change: epoch("n2", 2), refusal: primaryMoves},
	"an active primary does not move": {
		before: []change{ready("n1", "n2"), epoch("n1", 1), active("n1")}, change: epoch("n2", 2), refusal: primaryMoves},
	"an active primary begins again after the node restarted": {
		before: []change{ready("n1"), epoch("n1", 1), active("n1")}, change: epoch("n1", 2)},
	"a fenced node comes back with a new epoch": {
		before: []change{ready("n1"), epoch("n1", 1), fenced("n1")}, change: epoch("n1", 2)},
}

var entryCases = map[string]statusCase{
	"an entry of a ready replica stays": {
		before: []change{ready("n1", "n2")}, change: dropped("n2"), refusal: entryLeaves},
	"an entry of a failed replica stays": {
		before: []change{failed("n1")}, change: dropped("n1"), refusal: entryLeaves},
	"an entry does not leave with the list": {
		before: []change{ready("n1")}, refusal: entryLeaves,
		change: func(v *v1alpha1.Volume) { v.Status.Replicas = nil }},
	"an entry does not leave with the status": {
		before: []change{ready("n1")}, refusal: entryLeaves,
		change: func(v *v1alpha1.Volume) { v.Status = v1alpha1.VolumeStatus{} }},
	"one write does not replace an entry by another": {
		before: []change{ready("n1")}, change: all(dropped("n1"), ready("n9")), refusal: entryLeaves},
	"an entry leaves from gone": {
		before: []change{ready("n1", "n2"), gone("n2")}, change: dropped("n2")},
	"a ready entry does not leave together with a gone entry": {
		before: []change{ready("n1", "n2"), gone("n2")}, change: all(dropped("n2"), dropped("n1")), refusal: entryLeaves},
	"a node may hold a replica again after the entry left": {
		before: []change{ready("n1"), unstaged("n1", 3), gone("n1"), dropped("n1")}, change: ready("n1")},
	"an unstaged epoch grows": {
		before: []change{ready("n1"), unstaged("n1", 3)}, change: unstaged("n1", 4)},
	"an unstaged epoch does not decrease": {
		before: []change{ready("n1"), unstaged("n1", 3)}, change: unstaged("n1", 2), refusal: unstagedLowered},
	"an unstaged epoch is not forgotten": {
		before: []change{ready("n1"), unstaged("n1", 3)}, change: unstaged("n1", 0), refusal: unstagedLowered},
	"a failed replica is not ready": {
		before: []change{ready("n1")}, refusal: readyEntry,
		change: entry("n1", func(r *v1alpha1.ReplicaStatus) { r.State = v1alpha1.ReplicaFailed })},
	"a replica that is being copied becomes ready": {
		before: []change{all(ready("n1"), copying("n1"))}, change: ready("n1")},
	"a replica that is being copied is not ready": {
		before: []change{ready("n1")}, refusal: readyEntry,
		change: entry("n1", func(r *v1alpha1.ReplicaStatus) { r.State = v1alpha1.ReplicaCopying })},
	"a ready replica reports a size": {
		before: []change{ready("n1")}, refusal: readyEntry,
		change: entry("n1", func(r *v1alpha1.ReplicaStatus) { r.Capacity = nil })},
	"a node has one entry": {
		refusal: "Duplicate value",
		change: func(v *v1alpha1.Volume) {
			ready("n1")(v)
			v.Status.Replicas = append(v.Status.Replicas, v.Status.Replicas[0])
		}},
	"a list of entries is bounded": {
		change: ready("n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8", "n9"), refusal: "must have at most 8 items"},
	"a message is bounded": {
		refusal: "may not be more than 1024 bytes",
		change:  entry("n1", func(r *v1alpha1.ReplicaStatus) { r.Message = strings.Repeat("x", 1025) })},
	"an unknown state is refused": {
		refusal: `Unsupported value: "Purple"`,
		change:  entry("n1", func(r *v1alpha1.ReplicaStatus) { r.State = "Purple" })},
}

func TestAVolumesStatusMovesOnlyAsItsRulesAllow(t *testing.T) {
	env := apitest.Start(t)
	for _, cases := range []map[string]statusCase{epochCases, primaryCases, entryCases} {
		for name, tc := range cases {
			t.Run(name, func(t *testing.T) {
				v := live(t, env.Client, newVolume(t), tc.before...)
				before := v.DeepCopy()
				tc.change(v)
				err := env.Client.Status().Update(t.Context(), v)
				expect(t, err, tc.refusal)
				if tc.refusal != "" {
					unchanged(t, env.Client, before)
				}
			})
		}
	}
}
