package ownership_test

import (
	"testing"

	"berth.dev/berth/internal/lineage"
	. "berth.dev/berth/internal/ownership"
)

func TestStageDecides(t *testing.T) {
	prep, active := volume(owned(Preparing)), volume(owned(Active))
	reserved := volume(owned(Preparing), shared)
	mine := Key{Node: "a", Epoch: e2}
	outlived := func(c *Copy) {
		c.Promise = Promise{Epoch: e3, Primary: "b", Lineage: lineage.Lineage{{Epoch: e1}, {Epoch: e3, From: at(e1, 3)}}}
	}
	tests := map[string]struct {
		facts *NodeFacts
		want  verdict
	}{
		"to wait for a record that could not be read":                 {on("a", volume(), unread), verdict{Wait, RecordUnread}},
		"never to create a volume":                                    {on("a", nil), verdict{Refuse, VolumeUnknown}},
		"not to mount a volume that is being deleted":                 {on("a", volume(func(v *Volume) { v.Deleting = true })), verdict{Refuse, VolumeDeleting}},
		"to be done when the volume is mounted":                       {on("a", active, with(promised(active), opened(e2)), mounted), verdict{Done, Mounted}},
		"to mount the only copy of a one-copy volume":                 {on("a", volume(func(v *Volume) { v.Kind = OneCopy })), verdict{Mount, HoldsTheCopy}},
		"to refuse a one-copy volume without the copy":                {on("a", volume(func(v *Volume) { v.Kind = OneCopy }), func(f *NodeFacts) { f.Copy = Copy{} }), verdict{Refuse, ReplicaMissing}},
		"to refuse on a node that is out of service":                  {on("a", volume(), func(f *NodeFacts) { f.OutOfService = true }), verdict{Refuse, NodeOutOfService}},
		"to wait until the node renews a lapsed lease":                {on("a", volume(), func(f *NodeFacts) { f.SinceRenewal = SelfFenceAfter }), verdict{Wait, LeaseLapsed}},
		"to refuse on a node without a replica":                       {on("d", volume()), verdict{Refuse, ReplicaMissing}},
		"to refuse on a replica that is being removed":                {on("a", volume(state("a", Removing))), verdict{Refuse, ReplicaMissing}},
		"to refuse on a condemned copy":                               {on("a", volume(), with(func(c *Copy) { c.Condemned = true })), verdict{Refuse, ReplicaMissing}},
		"to wait for the attachment":                                  {on("a", volume(shared)), verdict{Wait, NotAttached}},
		"to release an epoch first after a restart":                   {on("a", active, with(promised(active), opened(e2)), func(f *NodeFacts) { f.Boot = "boot2" }), verdict{GiveUp, Restarted}},
		"to release a closed epoch first":                             {on("a", active, with(promised(active), opened(e2), func(c *Copy) { c.Closed = e2 })), verdict{GiveUp, Restarted}},
		"to release first an epoch that the node gave up unopened":    {on("a", prep, with(promised(prep), func(c *Copy) { c.Closed = e2 })), verdict{GiveUp, Restarted}},
		"to release first an epoch that is older than a closed epoch": {on("a", prep, with(promised(prep), func(c *Copy) { c.Closed = e3 })), verdict{GiveUp, Restarted}},
		"to release first an unopened epoch after the lease lapsed":   {on("a", prep, with(promised(prep)), func(f *NodeFacts) { f.Lapsed = true }), verdict{GiveUp, Restarted}},
		"to take over with a new lease":                               {on("b", volume(), func(f *NodeFacts) { f.Lapsed = true }), verdict{Record, TakingOver}},
		"to wait while another node may write":                        {on("b", active), verdict{Wait, PrimaryElsewhere}},
		"to wait while another node prepares":                         {on("b", prep), verdict{Wait, PrimaryElsewhere}},
		"to wait until the replica is ready":                          {on("b", volume(state("b", Lagging))), verdict{Wait, ReplicaNotReady}},
		"to wait while no answering copy has the recovery point":      {on("a", volume(), with(func(c *Copy) { c.Points = points(e1, 1) }), alone), verdict{Wait, RecoveryPointUnreachable}},
		"to give back an epoch that the node cannot begin":            {on("a", prep, with(promised(prep), func(c *Copy) { c.Points = points(e1, 1) }), alone), verdict{GiveUp, RecoveryPointUnreachable}},
		"to take a released volume over":                              {on("b", volume()), verdict{Record, TakingOver}},
		"to take a fenced volume over":                                {on("b", volume(owned(Fenced))), verdict{Record, TakingOver}},
		"to mend a record that is behind the promise of a peer":       {on("a", volume(), func(f *NodeFacts) { f.Peers[0].Copy = replica(outlived) }), verdict{Record, RecordBehind}},
		"to promise the epoch first":                                  {on("a", prep), verdict{Persist, PromisingEpoch}},
		"to keep the last writes before a rollback":                   {on("a", prep, with(promised(prep), func(c *Copy) { c.Dirty = true })), verdict{Snapshot, KeepingLastWrites}},
		"to put a branch aside before a rollback":                     {on("a", prep, with(promised(prep), func(c *Copy) { c.Points = points(e1, 3, 4) })), verdict{Preserve, BranchKept}},
		"to roll back to the recovery point":                          {on("a", prep, with(promised(prep), func(c *Copy) { c.Points, c.Preserved = points(e1, 3, 4), at(e1, 4) })), verdict{RollBack, RollingBack}},
		"to fetch the recovery point":                                 {on("a", prep, with(promised(prep), func(c *Copy) { c.Points = points(e1, 1) })), verdict{Pull, CatchingUp}},
		"to register the session first":                               {on("a", reserved, with(promised(reserved)), attached(Key{})), verdict{Register, TakingReservation}},
		"to take a free reservation":                                  {on("a", reserved, with(promised(reserved)), attached(Key{}), registered(mine)), verdict{Reserve, TakingReservation}},
		"to take the reservation from an older epoch":                 {on("a", reserved, with(promised(reserved)), attached(Key{Node: "b", Epoch: e1}), registered(mine)), verdict{Reserve, TakingReservation}},
		"to take the reservation from an earlier session":             {on("a", reserved, with(promised(reserved)), attached(mine), registered(mine)), verdict{Reserve, TakingReservation}},
		"to wait while the disk is held for a later epoch":            {on("a", reserved, with(promised(reserved)), attached(Key{Node: "b", Epoch: e3})), verdict{Wait, HolderUnknown}},
		"to wait while the disk is reserved by a stranger":            {on("a", reserved, with(promised(reserved)), attached(Key{}), func(f *NodeFacts) { f.Disk.Holder = 42 }), verdict{Wait, HolderUnknown}},
		"to wait for an attachment that is about to go":               {on("a", volume(shared, state("a", Removing)), attached(Key{})), verdict{Wait, NotAttached}},
		"to wait until the controller makes an attachment":            {on("d", volume(shared)), verdict{Wait, NotAttached}},
		"to give up an epoch after a peer shut the node out":          {on("a", reserved, with(promised(reserved)), attached(Key{Node: "b", Epoch: e2, Fence: true})), verdict{GiveUp, ShutOut}},
		"to open the copy before the record says Active":              {on("a", prep, with(promised(prep))), verdict{Open, OpeningCopy}},
		"to record Active before the mount":                           {on("a", prep, with(promised(prep), opened(e2))), verdict{Record, Activating}},
		"to mount in the end":                                         {on("a", active, with(promised(active), opened(e2))), verdict{Mount, OwnsEpoch}},
		"to mount a shared disk that the node has reserved":           {on("a", volume(owned(Active), shared), with(promised(reserved), opened(e2)), holding(mine)), verdict{Mount, OwnsEpoch}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) { expect(t, StageRules.Decide(tt.facts), tt.want) })
	}
}

func TestTakingOverOpensANewEpochAtTheRecoveryPoint(t *testing.T) {
	f := on("b", volume(), func(f *NodeFacts) { f.Peers[0].Copy.Promise.Epoch.Number = 6 })
	f.Peers[0].Copy.Promise.Lineage = nil // an orphan from before a restored backup
	next := StageRules.Decide(f).Next
	if next == nil {
		t.Fatal("nothing was recorded")
	}
	want := lineage.Branch{Epoch: lineage.Epoch{Number: 7, ID: "fresh"}, From: at(e1, 3)}
	if got := next.Lineage[len(next.Lineage)-1]; got != want {
		t.Errorf("branch %v, want %v", got, want)
	}
	if p := (Primary{Node: "b", Boot: "boot1", Phase: Preparing}); next.Primary != p || next.Epoch != want.Epoch {
		t.Errorf("primary %v in epoch %v", next.Primary, next.Epoch)
	}
	if f.Record.Primary.Phase != Released || len(f.Record.Lineage) != 1 {
		t.Error("the record that was read has been changed")
	}
}

func TestAnEpochIsAboveEveryEpochOfTheNodesOwn(t *testing.T) {
	for name, knows := range map[string]func(*Copy){
		"opened": func(c *Copy) { c.Opened.Number = 6 },
		"closed": func(c *Copy) { c.Closed.Number = 6 },
	} {
		t.Run(name, func(t *testing.T) {
			next := StageRules.Decide(on("b", volume(), with(knows))).Next
			if next == nil || next.Epoch.Number != 7 {
				t.Errorf("record %+v, want epoch 7", next)
			}
		})
	}
}

func TestAnUncleanEndMeansACheckBeforeTheMount(t *testing.T) {
	v := volume(owned(Active), func(v *Volume) { v.Clean = false })
	if a := StageRules.Decide(on("a", v, with(promised(v), opened(e2)))); a.Verb != Mount || !a.Check {
		t.Errorf("%v with check %t", a.Verb, a.Check)
	}
}
