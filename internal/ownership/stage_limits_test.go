package ownership_test

import (
	"testing"

	. "berth.dev/berth/internal/ownership"
)

func noCopy(f *NodeFacts) { f.Copy = Copy{} }

func oneCopy(v *Volume) { v.Kind = OneCopy }

func TestStageTakesNothingForGranted(t *testing.T) {
	prep, active := volume(owned(Preparing)), volume(owned(Active))
	written := append(points(e1, 1, 2, 3), at(e2, 4))
	ofPeer := func(f *NodeFacts) { f.Peers[0].Copy.Points = written }
	tests := map[string]struct {
		facts *NodeFacts
		want  verdict
	}{
		"what is mounted stays so while the volume is deleted": {on("a", volume(owned(Active), deleting), with(promised(active), opened(e2)), mounted), verdict{Done, Mounted}},
		"the only copy is in quarantine":                       {on("a", volume(oneCopy), with(func(c *Copy) { c.Quarantined = true })), verdict{Refuse, ReplicaMissing}},
		"the only copy is in the trash":                        {on("a", volume(oneCopy), with(func(c *Copy) { c.Condemned = true })), verdict{Refuse, ReplicaMissing}},
		"a disk is attached of which the record knows nothing": {on("d", volume(shared), attached(Key{})), verdict{Wait, NotAttached}},
		"the record says Active, and the copy knows nothing":   {on("a", active, with(promised(active), opened(e1))), verdict{GiveUp, Restarted}},
		"a peer has writes of an epoch that was never opened":  {on("a", prep, with(promised(prep)), ofPeer), verdict{GiveUp, Restarted}},
		"the node has said that it stopped":                    {on("a", volume(owned(Preparing), entry("a", func(r *Replica) { r.Unstaged = e2 })), with(promised(prep))), verdict{GiveUp, Restarted}},
		"the owner's replica is said to lag":                   {on("a", volume(owned(Preparing), state("a", Lagging)), with(promised(prep))), verdict{Open, OpeningCopy}},
		"it alone has the recovery point":                      {on("b", volume(), alone), verdict{Record, TakingOver}},
		"its own writes are newer than the recovery point":     {on("a", active, with(promised(active), opened(e2), has(written...))), verdict{Mount, OwnsEpoch}},
		"nobody else has its writes":                           {on("a", active, with(promised(active), opened(e2), has(at(e2, 4))), alone), verdict{Mount, OwnsEpoch}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) { expect(t, StageRules.Decide(tt.facts), tt.want) })
	}
}

func TestATakeoverEndsWhatWasAskedAboutTheEpochBefore(t *testing.T) {
	v := volume(owned(Fenced), shared, func(v *Volume) { v.FenceRequest, v.ExpireAt = FenceRequest{"c", e2}, now })
	a := StageRules.Decide(on("b", v, with(promised(v)), attached(Key{Node: "a", Epoch: e2})))
	expect(t, a, verdict{Record, TakingOver})
	if n := a.Next; n.FenceRequest != (FenceRequest{}) || !n.ExpireAt.IsZero() {
		t.Errorf("left are %v, and an expiry at %v", n.FenceRequest, n.ExpireAt)
	}
}

func TestTheOwnerRecordsThatItIsReady(t *testing.T) {
	written := at(e2, 4)
	for _, tt := range []struct{ was, want State }{{Lagging, Ready}, {Ready, Ready}, {Failed, Syncing}} {
		v := volume(owned(Preparing), state("a", tt.was))
		a := StageRules.Decide(on("a", v, with(promised(v), opened(e2), has(append(points(e1, 1, 2, 3), written)...))))
		expect(t, a, verdict{Record, Activating})
		if e, _ := a.Next.Replica("a"); e.State != tt.want || e.Point != written || a.Next.Primary.Phase != Active {
			t.Errorf("from %v to %v at %v, %v", tt.was, e.State, e.Point, a.Next.Primary.Phase)
		}
	}
}

func TestWhoPromisesAnEpoch(t *testing.T) {
	active := volume(owned(Active))
	disk := volume(owned(Active), shared)
	tests := map[string]struct {
		facts *NodeFacts
		want  bool
	}{
		"a standby with a copy":         {on("b", active), true},
		"one whose copy is not there":   {on("b", volume(owned(Active), state("b", Syncing)), noCopy), false},
		"one with a disk, and no copy":  {on("b", disk, noCopy, link(Attached)), true},
		"one that knows the epoch":      {on("b", active, with(promised(active))), false},
		"the owner while it is mounted": {on("a", active, with(opened(e2)), mounted), false},
		"the node of the only copy":     {on("a", volume(owned(Active), oneCopy)), false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if a := TendRules.Decide(tt.facts); (a.Reason == PromisingEpoch) != tt.want {
				t.Errorf("%v, %v: %s", a.Verb, a.Reason, a.Message())
			}
		})
	}
}

// The epoch that is closed is never written again.
func TestUnstageClosesTheEpochThatMayBeWritten(t *testing.T) {
	prep, active := volume(owned(Preparing)), volume(owned(Active))
	tests := map[string]struct {
		facts *NodeFacts
		want  Promise
	}{
		"the one that is mounted":            {on("a", active, with(promised(active), opened(e2)), mounted), Promise{Epoch: e2}},
		"an earlier one that is mounted":     {on("a", active, with(promised(active), opened(e1)), mounted), Promise{Epoch: e1}},
		"the one that the node prepares":     {on("a", prep, with(promised(prep), opened(e1))), Promise{Epoch: e2}},
		"not another node's":                 {on("b", prep, with(promised(prep), opened(e1))), Promise{Epoch: e1}},
		"the last one, if no record tells":   {on("a", active, with(promised(active), opened(e2)), unread), Promise{Epoch: e2}},
		"a disk's, of which nothing is kept": {on("a", volume(owned(Active), shared), noCopy), Promise{Epoch: e2}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			a := UnstageRules.Decide(tt.facts)
			if a.Verb != Close || a.Promise.Epoch != tt.want.Epoch {
				t.Errorf("%v of %v: %s", a.Verb, a.Promise.Epoch, a.Message())
			}
		})
	}
	f := on("a", active, with(promised(active), opened(e2), func(c *Copy) { c.Closed, c.Dirty = e2, true }))
	if a := UnstageRules.Decide(f); a.Verb != Snapshot || a.To != at(e2, 4) {
		t.Errorf("the last writes are kept as %v by %v", a.To, a.Verb)
	}
	expect(t, UnstageRules.Decide(on("a", volume(owned(Active), oneCopy), with(func(c *Copy) { c.Closed = e2 }))), verdict{Done, NotOwner})
}

// To release an epoch whose writes are gone would call an older copy the volume.
func TestUnstageTellsWritesThatAreGoneFromAnEpochWithoutWrites(t *testing.T) {
	prep, active := volume(owned(Preparing)), volume(owned(Active))
	closed := func(c *Copy) { c.Closed = e2 }
	gone := func(f *NodeFacts) { f.Copy = Copy{Closed: e2} }
	inPeer := func(f *NodeFacts) { f.Peers[0].Copy.Points = append(points(e1, 1, 2, 3), at(e2, 4)) }
	tests := map[string]struct {
		facts *NodeFacts
		lost  bool
		state State // of the entry then
	}{
		"the copy was removed":                                {on("a", active, gone), true, Lost},
		"it was removed before the epoch was closed":          {on("a", active, noCopy), true, Lost},
		"it was prepared, opened, and rolled back since":      {on("a", prep, with(promised(prep), opened(e2), closed, has(points(e1, 1, 2)...)), inPeer), false, 0},
		"it was removed while it was to go":                   {on("a", volume(owned(Active), state("a", Removing)), gone), true, Removing},
		"it was rolled back":                                  {on("a", active, with(promised(active), opened(e2), closed, has(points(e1, 1, 2)...))), true, Ready},
		"it was never opened in an epoch that was active":     {on("a", active, with(promised(active), opened(e1), closed)), true, Ready},
		"a disk was never opened in an epoch that was active": {on("a", volume(owned(Active), shared), func(f *NodeFacts) { f.Copy = Copy{Opened: e1, Closed: e2} }), true, Ready},
		"the epoch was only prepared":                         {on("a", prep, with(promised(prep), opened(e1), closed)), false, 0},
		"it was prepared, and a copy is not there":            {on("a", prep, gone), true, Lost},
		"it was prepared, and a peer has writes of it":        {on("a", prep, with(promised(prep), opened(e1), closed), inPeer), true, Ready},
		"it was prepared, and the copy has writes of it":      {on("a", prep, with(promised(prep), opened(e1), closed, has(append(points(e1, 1, 2, 3), at(e2, 4))...))), true, Ready},
		"it was prepared on a disk":                           {on("a", volume(owned(Preparing), shared), func(f *NodeFacts) { f.Copy = Copy{Closed: e2, Promise: Promise{Epoch: e2}} }), false, 0},
		"the writes are there":                                {on("a", prep, with(promised(prep), opened(e2), closed)), false, 0},
		"the volume is being deleted":                         {on("a", volume(owned(Active), deleting), gone), false, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			a := UnstageRules.Decide(tt.facts)
			if !tt.lost {
				expect(t, a, verdict{Record, Releasing})
				return
			}
			expect(t, a, verdict{Record, CopyLost})
			if e, _ := a.Next.Replica("a"); e.Unstaged != e2 || e.State != tt.state {
				t.Errorf("the entry says %v, and that the node stopped in %v", e.State, e.Unstaged)
			}
		})
	}
}

func TestAReleaseSaysThatTheNodeStopped(t *testing.T) {
	v := volume(owned(Active), shared, func(v *Volume) { v.Clean, v.FenceRequest = false, FenceRequest{"b", e2} })
	closed := func(f *NodeFacts) { f.Copy = Copy{Opened: e2, Closed: e2, Flushed: e2, Promise: Promise{Epoch: e2}} }
	a := UnstageRules.Decide(on("a", v, closed))
	expect(t, a, verdict{Record, Releasing})
	if e, _ := a.Next.Replica("a"); e.Unstaged != e2 || a.Next.FenceRequest != (FenceRequest{}) || !a.Next.Clean || !a.Next.RecoveryPoint.IsZero() {
		t.Errorf("recorded is %+v", a.Next)
	}
	prep := volume(owned(Preparing))
	a = UnstageRules.Decide(on("a", prep, with(promised(prep), func(c *Copy) { c.Closed = e2 })))
	expect(t, a, verdict{Record, Releasing})
	if !a.Next.Clean || a.Next.RecoveryPoint != at(e1, 3) {
		t.Errorf("an epoch without writes leaves the volume clean %t, at %v", a.Next.Clean, a.Next.RecoveryPoint)
	}
}
