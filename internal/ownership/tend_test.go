package ownership_test

import (
	"slices"
	"testing"
	"time"

	"berth.dev/berth/internal/lineage"
	. "berth.dev/berth/internal/ownership"
)

func TestAnAgentTendsItsReplicaAndDecides(t *testing.T) {
	active, fenced, prep := volume(owned(Active)), volume(owned(Fenced)), volume(owned(Preparing))
	said := volume(owned(Fenced), entry("a", func(r *Replica) { r.Unstaged = e2 }))
	disk := volume(owned(Active), shared, func(v *Volume) { v.FenceRequest = FenceRequest{Executor: "b", Epoch: e2} })
	removing := volume(state("c", Removing), func(v *Volume) { v.Factor = 2 })
	elsewhere := volume(owned(Active), func(v *Volume) { v.Primary.Node = "b" })
	oneCopy := func(v *Volume) { v.Kind, v.Primary = OneCopy, Primary{} }
	known := promised(volume())
	condemned := func(c *Copy) { c.Condemned, c.DestroyAt = true, now.Add(time.Minute) }
	due := func(c *Copy) { c.Condemned, c.DestroyAt = true, now }
	refused := func(f *NodeFacts) { f.Peers[0].Confirmed = false }
	noCopy := func(f *NodeFacts) { f.Copy = Copy{} }
	newer := func(f *NodeFacts) { f.Peers[1].Copy.Points = append(f.Peers[1].Copy.Points, at(e1, 4)) }
	tests := map[string]struct {
		facts *NodeFacts
		want  verdict
	}{
		"to do nothing when all is well":                                      {on("b", volume(), with(known)), verdict{Nothing, Settled}},
		"to close a superseded epoch":                                         {on("b", active, with(opened(e1)), mounted), verdict{Close, Superseded}},
		"to unmount a superseded epoch after one of its own ended":            {on("b", active, with(opened(e1), func(c *Copy) { c.Closed = e2 }), mounted), verdict{Unmount, Superseded}},
		"to unmount a superseded epoch":                                       {on("b", active, with(opened(e1), func(c *Copy) { c.Closed = e1 }), mounted), verdict{Unmount, Superseded}},
		"to close a fenced epoch":                                             {on("a", fenced, with(opened(e2)), mounted), verdict{Close, Superseded}},
		"to say that a fenced epoch has ended here":                           {on("a", fenced, with(promised(fenced), opened(e2), func(c *Copy) { c.Closed = e2 })), verdict{Record, ClosingEpoch}},
		"to close a fenced epoch before it says so":                           {on("a", fenced, with(promised(fenced), opened(e2))), verdict{Close, ClosingEpoch}},
		"to say so once":                                                      {on("a", said, with(promised(said), opened(e2), func(c *Copy) { c.Closed = e2 })), verdict{Nothing, Settled}},
		"to say nothing of a fenced epoch of another node":                    {on("b", fenced, with(promised(fenced))), verdict{Nothing, Settled}},
		"to close an epoch when the device refuses the node":                  {on("a", volume(owned(Active), shared), with(opened(e2)), attached(Key{Node: "b", Epoch: e2, Fence: true}), mounted), verdict{Close, ShutOut}},
		"to release an epoch whose entry is gone, though a pod waits":         {on("a", volume(owned(Active), state("a", Gone)), wanted, with(promised(active), opened(e2))), verdict{GiveUp, CopyGone}},
		"to release an epoch that no pod on the node wants":                   {on("a", active, with(promised(active), opened(e2))), verdict{GiveUp, NotWanted}},
		"to shut a writer out when the controller asks":                       {on("b", disk, with(promised(disk)), attached(Key{Node: "a", Epoch: e2}), registered(Key{Node: "b", Epoch: e2, Fence: true})), verdict{Reserve, ShuttingOut}},
		"to report that the writer is shut out":                               {on("b", disk, with(promised(disk)), holding(Key{Node: "b", Epoch: e2, Fence: true})), verdict{Record, ShuttingOut}},
		"to leave a copy alone while the API is away":                         {on("a", volume(), unread), verdict{Wait, RecordUnread}},
		"to quarantine a copy without a record":                               {on("a", nil), verdict{Quarantine, LooksOrphaned}},
		"to keep a quarantined copy until a person decides":                   {on("a", nil, with(func(c *Copy) { c.Quarantined = true })), verdict{Wait, LooksOrphaned}},
		"to quarantine a copy without an entry":                               {on("d", volume()), verdict{Quarantine, LooksOrphaned}},
		"to keep an orphan while too few others answer":                       {on("d", volume(), with(func(c *Copy) { c.Quarantined = true }), alone), verdict{Wait, TooFewOthers}},
		"to condemn an orphan when enough other copies exist":                 {on("d", volume(), with(func(c *Copy) { c.Quarantined = true })), verdict{Condemn, Unneeded}},
		"to record Active again when a backup forgot Active":                  {on("a", prep, with(promised(prep), opened(e2)), mounted), verdict{Record, Activating}},
		"to condemn a copy of a volume being deleted":                         {on("a", volume(state("a", Removing), func(v *Volume) { v.Deleting = true })), verdict{Condemn, VolumeDeleting}},
		"to destroy a copy of a deleted volume":                               {on("a", volume(state("a", Removing), func(v *Volume) { v.Deleting = true }), with(due)), verdict{Destroy, VolumeDeleting}},
		"to record that the copy of a deleted volume is gone":                 {on("a", volume(state("a", Removing), func(v *Volume) { v.Deleting = true }), noCopy), verdict{Record, CopyGone}},
		"to condemn a surplus copy":                                           {on("c", removing), verdict{Condemn, Unneeded}},
		"to take the removal back when too few confirm":                       {on("c", removing, refused), verdict{Record, TooFewOthers}},
		"to leave the trash when too few confirm":                             {on("c", removing, with(due), refused), verdict{Reprieve, TooFewOthers}},
		"to wait while the copy is in the trash":                              {on("c", removing, with(condemned)), verdict{Wait, InTrash}},
		"to destroy the copy when the time in the trash is over":              {on("c", removing, with(due)), verdict{Destroy, Unneeded}},
		"to record that the removed copy is gone":                             {on("c", removing, noCopy), verdict{Record, CopyGone}},
		"to do nothing when the record says that the copy is gone":            {on("c", volume(state("c", Gone)), noCopy), verdict{Nothing, CopyGone}},
		"to take a copy out of the trash when the record counts on the copy":  {on("c", volume(), with(condemned)), verdict{Reprieve, CountedOn}},
		"to take a copy out of quarantine when the record counts on the copy": {on("c", volume(), with(func(c *Copy) { c.Quarantined = true })), verdict{Reprieve, CountedOn}},
		"to record a copy that is lost":                                       {on("b", volume(), noCopy), verdict{Record, CopyLost}},
		"to close an epoch of a copy that another node owns":                  {on("a", elsewhere, with(promised(elsewhere), opened(e2)), mounted), verdict{Close, Superseded}},
		"to take no snapshot before it is due":                                {on("a", active, with(promised(active), opened(e2), dirty), mounted), verdict{Nothing, Settled}},
		"to take no snapshot of what has not changed":                         {on("a", active, with(promised(active), opened(e2)), mounted, func(f *NodeFacts) { f.SnapshotDue = true }), verdict{Nothing, Settled}},
		"to promise nothing where there is one copy":                          {on("a", volume(oneCopy), alone, func(f *NodeFacts) { f.Copy.Promise = Promise{} }), verdict{Nothing, Settled}},
		"to take no snapshot where there is one copy":                         {on("a", volume(oneCopy), with(known, dirty), mounted, alone, func(f *NodeFacts) { f.SnapshotDue = true }), verdict{Nothing, Settled}},
		"to take no snapshot of what is not mounted":                          {on("a", active, wanted, with(promised(active), opened(e2), dirty), func(f *NodeFacts) { f.SnapshotDue = true }), verdict{Nothing, Settled}},
		"to fill a copy anew that failed":                                     {on("b", volume(state("b", Failed)), noCopy, alone), verdict{Record, Reporting}},
		"to take a snapshot when it is due":                                   {on("a", active, with(promised(active), opened(e2), func(c *Copy) { c.Dirty = true }), mounted, func(f *NodeFacts) { f.SnapshotDue = true }), verdict{Snapshot, IntervalPassed}},
		"to promise a new epoch":                                              {on("b", active), verdict{Persist, PromisingEpoch}},
		"to put a branch aside":                                               {on("b", volume(), with(known, func(c *Copy) { c.Points = points(e1, 3, 4) })), verdict{Preserve, BranchKept}},
		"to put a branch aside before the copy leaves":                        {on("c", removing, with(promised(removing), func(c *Copy) { c.Points = points(e1, 3, 4) })), verdict{Preserve, BranchKept}},
		"to roll back when the branch is put aside":                           {on("b", volume(), with(known, func(c *Copy) { c.Points, c.Preserved = points(e1, 3, 4), at(e1, 4) })), verdict{RollBack, RollingBack}},
		"to fetch a point that a peer has":                                    {on("b", volume(func(v *Volume) { v.RecoveryPoint = at(e1, 4) }), with(known), newer), verdict{Pull, CatchingUp}},
		"not to fetch a point beyond the recovery point":                      {on("b", volume(), with(known), newer), verdict{Nothing, Settled}},
		"to report the points of the copy":                                    {on("b", volume(entry("b", older)), with(known)), verdict{Record, Reporting}},
		"to drop points that no replica needs":                                {on("b", volume(), with(known), func(f *NodeFacts) { f.Keep = 1 }), verdict{Drop, NotNeeded}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) { expect(t, TendRules.Decide(tt.facts), tt.want) })
	}
}

// sized gives the volume a size, and copies to the node and to its peers in order.
func sized(record, mine int64, peers ...int64) func(*NodeFacts) {
	return func(f *NodeFacts) {
		v := *f.Record
		v.Size = record
		f.Record, f.Copy.Size = &v, mine
		for i := range peers {
			f.Peers[i].Copy.Size = peers[i]
		}
	}
}

func TestAReplicaGrowsBeforeItFollows(t *testing.T) {
	active := volume(owned(Active))
	known := promised(volume())
	mine := []func(*Copy){promised(active), opened(e2)}
	full := func(f *NodeFacts) { f.Full = true }
	ahead := func(f *NodeFacts) {
		for i := range f.Peers {
			f.Peers[i].Copy.Points = points(e1, 1, 2, 3, 4)
		}
	}
	later := func(v *Volume) { v.RecoveryPoint = at(e1, 4) }
	tests := map[string]struct {
		facts *NodeFacts
		want  verdict
		size  int64
		from  string
	}{
		"to the size that the record asks for":                           {facts: on("b", volume(), with(known), sized(9, 5, 5, 5)), want: verdict{Grow, Growing}, size: 9},
		"to the size of a peer, of which the record does not know":       {facts: on("b", volume(), with(known), sized(5, 5, 5, 9)), want: verdict{Grow, Growing}, size: 9},
		"before it fetches what a larger peer has":                       {facts: on("b", volume(later), with(known), ahead, sized(5, 5, 9, 9)), want: verdict{Grow, Growing}, size: 9},
		"and not while it has no room":                                   {facts: on("b", volume(), with(known), full, sized(9, 5, 5, 5)), want: verdict{Nothing, Settled}},
		"and without room follows the peer that is no larger":            {facts: on("b", volume(later), with(known), ahead, full, sized(9, 5, 9, 5)), want: verdict{Pull, CatchingUp}, from: "c"},
		"and without room follows no larger peer":                        {facts: on("b", volume(later), with(known), ahead, full, sized(9, 5, 9, 9)), want: verdict{Nothing, Settled}},
		"and never to less":                                              {facts: on("b", volume(), with(known), sized(5, 9, 5, 5)), want: verdict{Nothing, Settled}},
		"and not when it is to go":                                       {facts: on("c", volume(state("c", Removing), func(v *Volume) { v.Factor = 2 }), with(known), sized(9, 5, 5, 5)), want: verdict{Condemn, Unneeded}},
		"and a mounted one grows when all others have":                   {facts: on("a", active, with(mine...), mounted, sized(9, 5, 9, 9)), want: verdict{Grow, Growing}, size: 9},
		"and a mounted one waits for one that has not":                   {facts: on("a", active, with(mine...), mounted, sized(9, 5, 9, 5)), want: verdict{Nothing, Settled}},
		"and a mounted one waits for none that the record does not have": {facts: on("a", volume(owned(Active), func(v *Volume) { v.Replicas = v.Replicas[:2] }), with(mine...), mounted, sized(9, 5, 9, 5)), want: verdict{Grow, Growing}, size: 9},
		"and a mounted one waits for none that is to go":                 {facts: on("a", volume(owned(Active), state("c", Removing)), with(mine...), mounted, sized(9, 5, 9, 5)), want: verdict{Grow, Growing}, size: 9},
		"and not with a volume that is deleted":                          {facts: on("a", volume(owned(Active), deleting), with(mine...), mounted, sized(9, 5, 9, 9)), want: verdict{Nothing, Settled}},
		"and a disk does not grow by a node":                             {facts: on("a", volume(owned(Active), shared), with(promised(volume(owned(Active), shared)), opened(e2)), holding(Key{Node: "a", Epoch: e2}), mounted, sized(9, 0, 9, 9)), want: verdict{Nothing, Settled}},
		"and a mounted one waits for none that is silent":                {facts: on("a", active, with(mine...), mounted, sized(9, 5, 9), func(f *NodeFacts) { f.Peers = f.Peers[:1] }), want: verdict{Grow, Growing}, size: 9},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			a := TendRules.Decide(tt.facts)
			expect(t, a, tt.want)
			if a.Size != tt.size || a.From != tt.from && tt.from != "" {
				t.Errorf("it grows to %d, and fetches from %q; want %d and %q", a.Size, a.From, tt.size, tt.from)
			}
		})
	}
}

func TestANodeThatStagesGrowsItsCopyBeforeItFetches(t *testing.T) {
	preparing := volume(owned(Preparing), func(v *Volume) { v.RecoveryPoint = at(e1, 4) })
	ahead := func(f *NodeFacts) { f.Peers[0].Copy.Points = points(e1, 1, 2, 3, 4) }
	f := on("a", preparing, wanted, with(promised(preparing)), ahead, sized(5, 5, 9, 5))
	if a := StageRules.Decide(f); a.Verb != Grow || a.Size != 9 {
		t.Errorf("%v to %d: %s", a.Verb, a.Size, a.Message())
	}
	f.Copy.Quarantined = true // the record counts on it again, and the pod does not wait for that
	if a := StageRules.Decide(f); a.Verb != Grow || a.Size != 9 {
		t.Errorf("in quarantine, %v to %d: %s", a.Verb, a.Size, a.Message())
	}
	f.Full = true // another node may be able to take the volume over
	expect(t, StageRules.Decide(f), verdict{GiveUp, RecoveryPointUnreachable})
}

func TestTheKubeletIsAnsweredAndUpkeepGoesOn(t *testing.T) {
	f := on("b", volume(owned(Active)), wanted)
	answer, do := NodeRules().Next(f)
	expect(t, answer, verdict{Wait, PrimaryElsewhere})
	expect(t, do, verdict{Persist, PromisingEpoch})
}

func TestARecordIsMendedOnlyByALaterStateOfItself(t *testing.T) {
	later := lineage.Lineage{{Epoch: e1}, {Epoch: e2, From: at(e1, 3)}, {Epoch: e3, From: at(e2, 5)}}
	rival := lineage.Lineage{{Epoch: e1}, {Epoch: e3, From: at(e1, 2)}}
	knows := func(l lineage.Lineage) func(*NodeFacts) {
		return with(func(c *Copy) { c.Promise = Promise{Epoch: l.Head(), Primary: "c", Boot: "boot7", Lineage: l} })
	}
	if next := TendRules.Decide(on("b", volume(), knows(later))).Next; next == nil || next.Epoch != e3 ||
		next.Primary != (Primary{Node: "c", Boot: "boot7", Phase: Active}) || next.RecoveryPoint != at(e2, 5) {
		t.Errorf("record %+v", next)
	}
	if a := TendRules.Decide(on("b", volume(), knows(rival))); a.Reason == RecordBehind {
		t.Error("an epoch that began elsewhere was taken for a later state of the record")
	}
	loss := Loss{Epoch: e1, Kept: at(e1, 2), Known: at(e1, 2)} // the owner released its lost writes since
	f := on("b", volume(), knows(rival))
	f.Copy.Promise.Losses = []Loss{loss}
	if next := TendRules.Decide(f).Next; next == nil || next.Epoch != e3 || next.RecoveryPoint != loss.Kept || !slices.Equal(next.Losses, []Loss{loss}) {
		t.Errorf("an epoch that began after a loss the backup has forgotten: record %+v", next)
	}
}

func TestRetentionKeepsThePointsThatOtherReplicasNeed(t *testing.T) {
	tests := map[string]struct {
		edit func(*NodeFacts)
		want []lineage.Point
	}{
		"keeps only the newest point when all replicas have the newest point": {func(*NodeFacts) {}, points(e1, 1, 2)},
		"keeps the newest common point of a peer that is behind":              {func(f *NodeFacts) { f.Peers[0].Copy.Points = points(e1, 1, 2) }, points(e1, 1)},
		"keeps the first points since the report of a silent peer":            {func(f *NodeFacts) { f.Peers = f.Peers[1:]; entry("a", older)(f.Record) }, points(e1, 1)},
		"keeps a point that is held for another replica":                      {func(f *NodeFacts) { f.Copy.Holds = []Hold{{For: "c", Point: at(e1, 1), Until: now.Add(time.Second)}} }, points(e1, 2)},
		"drops a point when the hold is over":                                 {func(f *NodeFacts) { f.Copy.Holds = []Hold{{For: "c", Point: at(e1, 1), Until: now}} }, points(e1, 1, 2)},
		"keeps the recovery point though a newer point exists":                {func(f *NodeFacts) { f.Record.RecoveryPoint = at(e1, 2) }, points(e1, 1)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := on("b", volume())
			f.Keep = 0
			tt.edit(f)
			rule := TendRules.Rule("retain")
			a, _ := rule(f)
			if len(a.Points) != len(tt.want) {
				t.Fatalf("drops %v, want %v", a.Points, tt.want)
			}
			for i := range tt.want {
				if a.Points[i] != tt.want[i] {
					t.Fatalf("drops %v, want %v", a.Points, tt.want)
				}
			}
		})
	}
}

func TestAStreamIsJudgedBeforeItsFirstByte(t *testing.T) {
	l := lineage.Lineage{{Epoch: e1}, {Epoch: e2, From: at(e1, 3)}}
	good := Stream{Promise: Promise{Epoch: e2, Lineage: l}, Base: at(e1, 3), Target: at(e2, 4)}
	tests := map[string]struct {
		edit    func(*Copy, *Stream)
		mounted bool
		want    Reason
	}{
		"the next increment is accepted":              {func(*Copy, *Stream) {}, false, Accepted},
		"a stream is refused under a mount":           {func(*Copy, *Stream) {}, true, CopyInUse},
		"a stream is refused over unsnapshotted data": {func(c *Copy, _ *Stream) { c.Dirty = true }, false, CopyInUse},
		"a stream to a condemned copy is refused":     {func(c *Copy, _ *Stream) { c.Condemned = true }, false, CopyCondemned},
		"an older epoch is refused":                   {func(c *Copy, _ *Stream) { c.Promise.Epoch = e3 }, false, StaleEpoch},
		"an older epoch is accepted about a point of the receiver's history": {func(c *Copy, _ *Stream) {
			c.Promise = Promise{Epoch: e3, Lineage: append(slices.Clone(l), lineage.Branch{Epoch: e3, From: at(e2, 4)})}
		}, false, Accepted},
		"an older epoch is refused about a point that its history left out": {func(c *Copy, _ *Stream) {
			c.Promise = Promise{Epoch: e3, Lineage: append(slices.Clone(l), lineage.Branch{Epoch: e3, From: at(e2, 3)})}
		}, false, StaleEpoch},
		"an older epoch's full copy does not replace what is as new": {func(c *Copy, s *Stream) {
			c.Promise = Promise{Epoch: e3, Lineage: append(slices.Clone(l), lineage.Branch{Epoch: e3, From: at(e2, 4)})}
			s.Base, c.Points = lineage.Point{}, points(e3, 5)
		}, false, WouldDestroyBranch},
		"a rival epoch of the same number is refused": {func(c *Copy, _ *Stream) {
			c.Promise.Epoch = lineage.Epoch{Number: 2, ID: "rival"}
		}, false, RivalEpoch},
		"a target outside the sender's lineage is refused": {func(_ *Copy, s *Stream) { s.Target = at(e1, 4) }, false, NotInLineage},
		"a stream of a larger copy is refused":             {func(c *Copy, s *Stream) { c.Size, s.Size = 5, 6 }, false, TooSmall},
		"a stream of a smaller copy is accepted":           {func(c *Copy, s *Stream) { c.Size, s.Size = 6, 5 }, false, Accepted},
		"an increment on another base is refused":          {func(_ *Copy, s *Stream) { s.Base = at(e1, 2) }, false, WrongBase},
		"an increment backwards is refused":                {func(_ *Copy, s *Stream) { s.Target = at(e1, 3) }, false, NothingNew},
		"a full copy replaces older data":                  {func(_ *Copy, s *Stream) { s.Base = lineage.Point{} }, false, Accepted},
		"a full copy does not replace a branch": {func(c *Copy, s *Stream) {
			s.Base, c.Points = lineage.Point{}, points(e1, 3, 4)
		}, false, WouldDestroyBranch},
		"the next increment in the same epoch is accepted": {func(c *Copy, _ *Stream) { c.Promise.Epoch = e2 }, false, Accepted},
		"a full copy does not replace what is as new": {func(c *Copy, s *Stream) {
			s.Base, c.Points = lineage.Point{}, []lineage.Point{at(e2, 4)}
		}, false, WouldDestroyBranch},
		"a full copy does not replace another history": {func(c *Copy, s *Stream) {
			s.Base, c.Points = lineage.Point{}, points(e3, 1)
		}, false, WouldDestroyBranch},
		"a full copy replaces a branch put aside": {func(c *Copy, s *Stream) {
			s.Base, c.Points, c.Preserved = lineage.Point{}, points(e1, 3, 4), at(e1, 4)
		}, false, Accepted},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c, s := replica(), good
			tt.edit(&c, &s)
			if ok, why := Receive(&c, tt.mounted, &s); why.Reason != tt.want || ok != (tt.want == Accepted) {
				t.Errorf("Receive() = %t, %s", ok, why.Message())
			}
		})
	}
}

func TestAReceivedStreamBindsTheReceiverToTheSendersEpoch(t *testing.T) {
	c := replica()
	s := Stream{Promise: Promise{Epoch: e2, Primary: "a"}, Base: at(e1, 3), Target: at(e2, 4)}
	if got := Received(&c, &s); got.Promise.Epoch != e2 || got.Tip() != at(e2, 4) || len(got.Points) != 4 {
		t.Errorf("Received() = %+v", got)
	}
	c.Promise.Epoch = e3
	if got := Received(&c, &s); got.Promise.Epoch != e3 || got.Tip() != at(e2, 4) {
		t.Errorf("after a stream of an older epoch: %+v", got)
	}
	s.Base = lineage.Point{}
	if got := Received(&c, &s); len(got.Points) != 1 {
		t.Errorf("a full copy left old snapshots: %v", got.Points)
	}
}

func TestAPeerConfirmsOnlyAPointThatItHoldsAndMeansToKeep(t *testing.T) {
	tests := map[string]struct {
		copy Copy
		want bool
	}{
		"a good copy":        {replica(), true},
		"a copy too old":     {replica(func(c *Copy) { c.Points = points(e1, 1, 2) }), false},
		"a newer copy":       {replica(func(c *Copy) { c.Points = points(e1, 4) }), true},
		"a higher branch":    {replica(func(c *Copy) { c.Points = points(e3, 9) }), false},
		"a condemned copy":   {replica(func(c *Copy) { c.Condemned = true }), false},
		"a quarantined copy": {replica(func(c *Copy) { c.Quarantined = true }), false},
		"no copy":            {Copy{}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			hold, ok := Confirm(&tt.copy, "b", at(e1, 3), now)
			if ok != tt.want || ok && hold != (Hold{For: "b", Point: at(e1, 3), Until: now.Add(HoldFor)}) {
				t.Errorf("Confirm() = %+v, %t", hold, ok)
			}
		})
	}
}

func TestTheControllerKeepsTheNumberOfReplicas(t *testing.T) {
	extra := func(f *ControllerFacts) { f.Nodes = append(f.Nodes, Machine{Name: "d", Fits: true, Slots: 1}) }
	two := func(v *Volume) { v.Factor = 2 }
	all := func(f *ControllerFacts) { f.Peers = append(f.Peers, Peer{Node: "a", Copy: replica(), Confirmed: true}) }
	answers := func(f *ControllerFacts) { f.Witnesses = nil }
	behind := func(f *ControllerFacts) {
		for i := range f.Peers {
			f.Peers[i].Copy.Points = points(e1, 1, 2)
		}
	}
	tests := map[string]struct {
		facts *ControllerFacts
		want  verdict
	}{
		"a gone replica leaves the record":                   {overseeing(volume(state("c", Gone))), verdict{Record, CopyGone}},
		"a replica that is missing for long is replaced":     {overseeing(volume(), extra, lost("c")), verdict{Record, TooFewReplicas}},
		"no replica is built on a node without room":         {overseeing(volume(), extra, lost("c"), func(f *ControllerFacts) { f.Nodes[3].Fits = false }), verdict{Nothing, Settled}},
		"no replica is built while the brake holds":          {overseeing(volume(), extra, lost("b", "c")), verdict{Wait, BrakeHeld}},
		"a replica that is to go counts no more":             {overseeing(volume(state("c", Removing)), extra), verdict{Record, TooFewReplicas}},
		"a replica that answers again is not missing":        {overseeing(volume(), extra, func(f *ControllerFacts) { f.Nodes[2].LostFor = time.Hour }), verdict{Nothing, Settled}},
		"a copy needs no slot of its node":                   {overseeing(volume(), extra, lost("c"), func(f *ControllerFacts) { f.Nodes[3].Slots = 0 }), verdict{Record, TooFewReplicas}},
		"no replica is built on a node that is lost":         {overseeing(volume(func(v *Volume) { v.Factor = 4 }), extra, lost("d")), verdict{Nothing, Settled}},
		"no replica is built for a volume that is deleted":   {overseeing(volume(owned(Active), deleting, func(v *Volume) { v.Replicas = v.Replicas[:1] }), extra, answers), verdict{Nothing, Settled}},
		"a replica is kept that has more than others answer": {overseeing(volume(two, owned(Active), state("c", Lagging)), all, answers, behind), verdict{Wait, TooFewOthers}},
		"a point that is not the volume's keeps no replica":  {overseeing(volume(two, entry("c", func(r *Replica) { r.State, r.Point = Lagging, at(e1, 9) })), all), verdict{Record, TooManyReplicas}},
		"a surplus replica is marked":                        {overseeing(volume(two), all), verdict{Record, TooManyReplicas}},
		"no replica is marked while too few others answer":   {overseeing(volume(two)), verdict{Wait, TooFewOthers}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) { expect(t, OverseeRules.Decide(tt.facts), tt.want) })
	}
}

func TestTheLeastUsefulReplicaGoesFirst(t *testing.T) {
	two := func(v *Volume) { v.Factor = 2 }
	all := func(f *ControllerFacts) { f.Peers = append(f.Peers, Peer{Node: "a", Copy: replica(), Confirmed: true}) }
	tests := map[string]struct {
		facts *ControllerFacts
		want  string
	}{
		"the last by name goes among equals":            {overseeing(volume(two), all), "c"},
		"a dead replica goes before all others":         {overseeing(volume(two), all, lost("b")), "b"},
		"a replica that is not ready goes":              {overseeing(volume(two, state("a", Lagging)), all), "a"},
		"the replica furthest behind goes":              {overseeing(volume(two, entry("b", older)), all), "b"},
		"a replica that is not ready goes, the last":    {overseeing(volume(two, state("c", Lagging)), all), "c"},
		"a replica that is not ready goes, one between": {overseeing(volume(two, state("b", Lagging)), all), "b"},
		"the owner never goes, however useless":         {overseeing(volume(two, owned(Active), state("a", Lagging)), all, func(f *ControllerFacts) { f.Witnesses = nil }), "c"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			next := OverseeRules.Decide(tt.facts).Next
			if next == nil {
				t.Fatal("nothing was marked")
			}
			for _, r := range next.Replicas {
				if (r.State == Removing) != (r.Node == tt.want) {
					t.Errorf("%s is %v, want %s to go", r.Node, r.State, tt.want)
				}
			}
		})
	}
}
