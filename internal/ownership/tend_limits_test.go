package ownership_test

import (
	"testing"
	"time"

	"berth.dev/berth/internal/lineage"
	. "berth.dev/berth/internal/ownership"
)

func has(p ...lineage.Point) func(*Copy) { return func(c *Copy) { c.Points = p } }
func dirty(c *Copy)                      { c.Dirty = true }
func deleting(v *Volume)                 { v.Deleting = true }

// What is taken for a branch is put aside and rolled back. Of the writes of the open epoch, that would be a loss.
func TestWhatIsPartOfTheVolumeIsNoBranch(t *testing.T) {
	active, prep := volume(owned(Active)), volume(owned(Preparing))
	bare := volume(owned(Active), func(v *Volume) { v.Lineage = lineage.Lineage{{Epoch: e1}} })
	written := append(points(e1, 1, 2, 3), at(e2, 4))
	tests := map[string]struct {
		facts  *NodeFacts
		branch bool
	}{
		"the writes of the open epoch":                       {on("a", active, wanted, with(promised(active), opened(e2), dirty)), false},
		"its snapshots":                                      {on("a", active, wanted, with(promised(active), opened(e2), has(written...))), false},
		"the writes of an epoch that its record lost":        {on("a", bare, wanted, with(promised(active), opened(e2), dirty)), false},
		"what is mounted, whatever it is":                    {on("a", active, wanted, mounted, with(promised(active), opened(e2), dirty, has(points(e1, 1, 2)...))), false},
		"an empty copy":                                      {on("b", volume(state("b", Syncing)), with(promised(volume()), has())), false},
		"a standby's snapshots of the open epoch":            {on("b", active, with(promised(active), has(written...))), false},
		"a standby's of an epoch that is being prepared":     {on("b", prep, with(promised(prep), has(written...))), false},
		"the owner's own, if it was opened in no epoch":      {on("a", active, wanted, with(promised(active), opened(e1), has(written...))), false},
		"what another epoch left where this one is prepared": {on("a", prep, wanted, with(promised(prep), opened(e1), has(written...))), true},
		"late writes of a fenced owner":                      {on("a", volume(owned(Fenced)), with(promised(volume(owned(Fenced))), opened(e2), dirty)), true},
		"a shared disk":                                      {on("b", volume(shared), with(promised(volume()), has(points(e3, 1)...)), link(Attached)), false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			a := TendRules.Decide(tt.facts)
			if branch := a.Reason == KeepingLastWrites || a.Reason == BranchKept || a.Reason == RollingBack; branch != tt.branch {
				t.Errorf("%v, %v: %s", a.Verb, a.Reason, a.Message())
			}
		})
	}
}

// Nothing leads from an unrelated copy to the volume, so it is not rolled back but fetched beside.
func TestAnUnrelatedCopyIsKeptAndNotRolledBack(t *testing.T) {
	facts := func(edit func(*Copy)) *NodeFacts {
		return on("b", volume(state("b", Syncing)), with(promised(volume()), has(at(e3, 1)), edit))
	}
	expect(t, TendRules.Decide(facts(func(*Copy) {})), verdict{Preserve, BranchKept})
	if a := TendRules.Decide(facts(func(c *Copy) { c.Preserved = at(e3, 1) })); a.Verb != Pull {
		t.Errorf("%v, %v: %s", a.Verb, a.Reason, a.Message())
	}
}

func TestACopyThatTheRecordDoesNotKnowIsLeftAloneUntilItIsProvedToBeNeedless(t *testing.T) {
	until := func(at time.Time) func(*Copy) { return func(c *Copy) { c.Quarantined, c.DestroyAt = true, at } }
	trash := func(c *Copy) { c.Condemned, c.DestroyAt = true, now.Add(time.Minute) }
	stranger := func(c *Copy) { c.Promise.Epoch = lineage.Epoch{Number: 1, ID: "another history"} }
	tests := map[string]struct {
		facts *NodeFacts
		want  verdict
	}{
		"to quarantine one of another history":                {on("d", volume(owned(Active)), with(stranger)), verdict{Quarantine, LooksOrphaned}},
		"to wait while it is in quarantine":                   {on("d", volume(), with(until(now.Add(1)))), verdict{Wait, LooksOrphaned}},
		"to condemn it afterwards":                            {on("d", volume(), with(until(now))), verdict{Condemn, Unneeded}},
		"to wait while it is in the trash":                    {on("d", volume(), with(trash)), verdict{Wait, InTrash}},
		"to wait for a person where there is no record":       {on("d", nil, with(trash)), verdict{Wait, LooksOrphaned}},
		"to leave a mounted one alone":                        {on("a", nil, mounted), verdict{Nothing, Settled}},
		"to keep one with writes that no snapshot has":        {on("d", volume(), with(until(now), dirty)), verdict{Wait, TooFewOthers}},
		"to keep one with a snapshot of another history":      {on("d", volume(), with(until(now), has(append(points(e1, 1, 2, 3), at(e3, 9))...))), verdict{Wait, TooFewOthers}},
		"to condemn it with its volume, whatever others have": {on("d", volume(deleting), with(until(now)), alone), verdict{Condemn, VolumeDeleting}},
		"to delete a copy before it promises anything":        {on("c", volume(owned(Released), state("c", Removing), deleting)), verdict{Condemn, VolumeDeleting}},
		"to detach a disk":                                    {on("d", volume(shared, owned(Active)), link(Attached)), verdict{Detach, NoLongerAttached}},
		"to do nothing about a disk that is not attached":     {on("d", volume(owned(Active), shared)), verdict{Nothing, Settled}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) { expect(t, TendRules.Decide(tt.facts), tt.want) })
	}
}

func TestAStandbyHasShutAWriterOutOnlyIfItsOwnSessionHoldsTheDisk(t *testing.T) {
	disk := func() *Volume {
		return volume(owned(Active), shared, func(v *Volume) { v.FenceRequest = FenceRequest{Executor: "b", Epoch: e2} })
	}
	mine, theirs := Key{Node: "b", Epoch: e2, Fence: true}, Key{Node: "a", Epoch: e2}
	tests := map[string]struct {
		edit func(*NodeFacts)
		want verdict
	}{
		"it holds the disk":               {func(*NodeFacts) {}, verdict{Record, ShuttingOut}},
		"its session has another key":     {registered(theirs), verdict{Register, ShuttingOut}},
		"another session of it has it":    {func(f *NodeFacts) { f.Disk.Holding = false }, verdict{Reserve, ShuttingOut}},
		"another key has the reservation": {func(f *NodeFacts) { f.Disk.Holder = theirs.Raw() }, verdict{Reserve, ShuttingOut}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			v := disk()
			expect(t, TendRules.Decide(on("b", v, with(promised(v)), holding(mine), tt.edit)), tt.want)
		})
	}
}

// A standby that acts on another node's request, or on one that is over, takes the disk from a writer that no
// controller wants to stop.
func TestAWriterIsShutOutOnlyOnItsOpenEpochsRequest(t *testing.T) {
	request := func(node string, e lineage.Epoch) func(*Volume) {
		return func(v *Volume) { v.FenceRequest = FenceRequest{Executor: node, Epoch: e} }
	}
	writer := Key{Node: "a", Epoch: e2}
	tests := map[string]struct {
		edits []func(*Volume)
		disk  func(*NodeFacts)
		acts  bool
	}{
		"the request is for it":                                 {[]func(*Volume){request("b", e2)}, attached(writer), true},
		"the writer has not taken the disk yet":                 {[]func(*Volume){request("b", e2), func(v *Volume) { v.Primary.Phase = Preparing }}, attached(Key{}), true},
		"the target has forgotten the writer":                   {[]func(*Volume){request("b", e2)}, attached(Key{}), false},
		"another node is asked":                                 {[]func(*Volume){request("c", e2)}, attached(writer), false},
		"an earlier epoch was to end":                           {[]func(*Volume){request("b", e1)}, attached(writer), false},
		"an earlier epoch was to end, and no node has the disk": {[]func(*Volume){request("b", e1)}, attached(Key{}), false},
		"an earlier epoch was to end, and the next prepares":    {[]func(*Volume){request("b", e1), func(v *Volume) { v.Primary.Phase = Preparing }}, attached(Key{}), false},
		"the disk is not attached, and the writer prepares":     {[]func(*Volume){request("b", e2), func(v *Volume) { v.Primary.Phase = Preparing }}, link(Attaching), false},
		"nobody is asked":                                       {nil, attached(writer), false},
		"the epoch is over":                                     {[]func(*Volume){request("b", e2), func(v *Volume) { v.Primary.Phase = Fenced }}, attached(writer), false},
		"it is the writer":                                      {[]func(*Volume){request("b", e2), func(v *Volume) { v.Primary.Node = "b" }}, attached(writer), false},
		"a later epoch has the disk":                            {[]func(*Volume){request("b", e2)}, attached(Key{Node: "c", Epoch: e3}), false},
		"the disk is not attached":                              {[]func(*Volume){request("b", e2)}, link(Attaching), false},
		"it has said so before": {[]func(*Volume){request("b", e2), entry("b", func(r *Replica) { r.Fenced = e2 })},
			holding(Key{Node: "b", Epoch: e2, Fence: true}), false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			v := volume(append([]func(*Volume){owned(Active), shared}, tt.edits...)...)
			f := on("b", v, with(promised(v)), wanted)
			f.Copy.Points = nil
			tt.disk(f)
			if a := TendRules.Decide(f); (a.Reason == ShuttingOut) != tt.acts {
				t.Errorf("%v, %v: %s", a.Verb, a.Reason, a.Message())
			}
		})
	}
	v := volume(owned(Active), shared, request("b", e2))
	a := TendRules.Decide(on("b", v, with(promised(v)), holding(Key{Node: "b", Epoch: e2, Fence: true})))
	if e, _ := a.Next.Replica("b"); e.Fenced != e2 {
		t.Errorf("the standby's word is about %v", e.Fenced)
	}
}

// Each row names what tells the source from the others. All else is equal, and then the first by name is it.
func TestACopyIsFetchedFromTheBestSource(t *testing.T) {
	newer := append(points(e1, 1, 2, 3), at(e1, 4))
	peer := func(node string, edit func(*Peer)) Peer {
		p := Peer{Node: node, Copy: replica(has(newer...)), Confirmed: true}
		edit(&p)
		return p
	}
	same := func(*Peer) {}
	tests := map[string]struct {
		a, b func(*Peer)
		want string
		base lineage.Point
	}{
		"none":                                   {same, same, "a", at(e1, 3)},
		"the newest point":                       {same, func(p *Peer) { p.Copy.Points = append(newer[:4:4], at(e1, 5)) }, "b", at(e1, 3)},
		"a point that an increment goes on from": {func(p *Peer) { p.Copy.Points = points(e1, 4) }, same, "b", at(e1, 3)},
		"its nearness":                           {same, func(p *Peer) { p.Near = true }, "b", at(e1, 3)},
		"its load":                               {func(p *Peer) { p.Load = 2 }, func(p *Peer) { p.Load = 1 }, "b", at(e1, 3)},
		"its nearness before its load":           {func(p *Peer) { p.Near, p.Load = true, 2 }, same, "a", at(e1, 3)},
		"an increment before its nearness":       {func(p *Peer) { p.Copy.Points, p.Near = points(e1, 4), true }, same, "b", at(e1, 3)},
		"the newest point before all else":       {func(p *Peer) { p.Near = true }, func(p *Peer) { p.Copy.Points = points(e1, 5) }, "b", lineage.Point{}},
	}
	for name, tt := range tests {
		for _, turned := range []bool{false, true} {
			v := volume(func(v *Volume) { v.RecoveryPoint = at(e1, 5) })
			f := on("c", v, with(promised(v)))
			f.Peers = []Peer{peer("a", tt.a), peer("b", tt.b)}
			if turned {
				f.Peers[0], f.Peers[1] = f.Peers[1], f.Peers[0]
			}
			if a := TendRules.Decide(f); a.Verb != Pull || a.From != tt.want || a.Base != tt.base {
				t.Errorf("%s, turned %t: %v from %q after %v: %s", name, turned, a.Verb, a.From, a.Base, a.Message())
			}
		}
	}
}

func TestACopyThatIsNotThereIsAdmittedOnce(t *testing.T) {
	gone := func(f *NodeFacts) { f.Copy = Copy{} }
	for _, tt := range []struct {
		state, want State
	}{{Ready, Lost}, {Lagging, Lost}, {Lost, Syncing}} {
		a := TendRules.Decide(on("b", volume(state("b", tt.state)), gone))
		expect(t, a, verdict{Record, CopyLost})
		if e, _ := a.Next.Replica("b"); e.State != tt.want || !e.Point.IsZero() {
			t.Errorf("from %v to %v with %v", tt.state, e.State, e.Point)
		}
	}
	for _, s := range []State{Reserved, Syncing, Failed} {
		if a := TendRules.Decide(on("b", volume(state("b", s)), gone)); a.Verb == Record {
			t.Errorf("one that is %v: %s", s, a.Message())
		}
	}
	for _, s := range []State{Reserved, Syncing} {
		if a := TendRules.Decide(on("b", volume(state("b", s)), gone, alone)); a.Verb == Record {
			t.Errorf("one that is %v, of which no other answers: %s", s, a.Message())
		}
	}
	if a := TendRules.Decide(on("b", volume(shared), gone, link(Attached), func(f *NodeFacts) { f.Copy.Promise = replica().Promise })); a.Reason == CopyLost {
		t.Error("a shared disk has no copy that could be lost")
	}
}

func TestANodeReportsItsOwnEntryAndNothingThatIsSo(t *testing.T) {
	known := promised(volume())
	tests := map[string]struct {
		record *Volume
		want   State
		point  lineage.Point
	}{
		"the copy has the newest point":   {volume(state("b", Lagging)), Ready, at(e1, 3)},
		"the point in the entry is old":   {volume(entry("b", older)), Ready, at(e1, 3)},
		"one that had failed fills first": {volume(entry("b", func(r *Replica) { r.State, r.Point = Failed, lineage.Point{} })), Syncing, at(e1, 3)},
	}
	for name, tt := range tests {
		a := TendRules.Decide(on("b", tt.record, with(known)))
		expect(t, a, verdict{Record, Reporting})
		if a.Next == nil {
			continue
		}
		if e, _ := a.Next.Replica("b"); e.State != tt.want || e.Point != tt.point {
			t.Errorf("%s: it reports %v at %v", name, e.State, e.Point)
		}
	}
	v := volume(shared, entry("b", func(r *Replica) { r.State, r.Tries, r.RetryAt = Syncing, 3, now }))
	a := TendRules.Decide(on("b", v, with(promised(v)), attached(Key{})))
	expect(t, a, verdict{Record, Reporting})
	if e, _ := a.Next.Replica("b"); e.State != Ready || e.Tries != 0 || !e.RetryAt.IsZero() {
		t.Errorf("an attachment that succeeded keeps %d tries until %v", e.Tries, e.RetryAt)
	}
	v = volume(entry("b", func(r *Replica) { r.Tries, r.RetryAt = 3, now }), func(v *Volume) { v.RecoveryPoint = at(e1, 9) })
	a = TendRules.Decide(on("b", v, with(known)))
	expect(t, a, verdict{Record, Reporting})
	if e, _ := a.Next.Replica("b"); e.State != Lagging || e.Tries != 3 || e.RetryAt.IsZero() {
		t.Errorf("a copy that is %v has %d tries until %v", e.State, e.Tries, e.RetryAt)
	}
}

func TestAnAttachmentIsMadeAndNotAgainstTheRecord(t *testing.T) {
	promise := with(promised(volume()))
	on := func(edits ...func(*Volume)) *NodeFacts {
		return on("b", volume(append([]func(*Volume){shared}, edits...)...), promise, func(f *NodeFacts) { f.Copy.Points = nil })
	}
	retry := entry("b", func(r *Replica) { r.RetryAt = now.Add(time.Minute) })
	if a := TendRules.Decide(on(state("b", Reserved), deleting)); a.Verb == Attach {
		t.Error("the disk of a volume that is being deleted is attached")
	}
	expect(t, TendRules.Decide(on(state("b", Reserved), retry)), verdict{Attach, BeingAttached})
	expect(t, TendRules.Decide(on(state("b", Failed), retry)), verdict{Wait, AttachmentFailed})
	a := TendRules.Decide(on())
	expect(t, a, verdict{Record, BeingAttached})
	if e, _ := a.Next.Replica("b"); e.State != Syncing {
		t.Errorf("an attachment that is not there is recorded as %v", e.State)
	}
}

// A session that ended takes the reservation back only where no other node can have written meanwhile.
func TestASessionTakesTheDiskBackOnlyForItsOwnOpenEpoch(t *testing.T) {
	forgets := func(v *Volume) { v.Sharing.Persistent = false }
	mine := Key{Node: "a", Epoch: e2}
	fence := Key{Node: "b", Epoch: e2, Fence: true}
	free := func(f *NodeFacts) { f.Disk = Disk{Link: Attached}; f.Copy.Points = nil }
	foreign := func(f *NodeFacts) { f.Disk.Holder = 0x1234 }
	older := func(f *NodeFacts) { f.Disk.Holder = Key{Node: "x", Epoch: e1}.Raw() }
	active := volume(owned(Active), shared, forgets)
	next := volume(owned(Active), shared, forgets, func(v *Volume) { v.Epoch = e3; v.Lineage = lineage.Lineage{{Epoch: e3}} })
	other := volume(owned(Active), shared, forgets, func(v *Volume) { v.Primary.Node = "b" })
	knows := with(promised(active), opened(e2))
	tests := map[string]struct {
		facts *NodeFacts
		want  verdict
	}{
		"the disk still has its key":                        {on("a", volume(owned(Active), shared), knows, attached(mine), mounted), verdict{Register, SessionRenewed}},
		"the target forgot every key":                       {on("a", active, knows, free, mounted), verdict{Register, SessionRenewed}},
		"the target forgot, and the node has a later epoch": {on("a", next, knows, free, mounted), verdict{Close, Superseded}},
		"the target forgot, and another node is the owner":  {on("a", other, knows, free, mounted), verdict{Close, Superseded}},
		"another key has it":                                {on("a", active, knows, attached(fence), mounted), verdict{Close, ShutOut}},
		"a target that never forgets has no key":            {on("a", volume(owned(Active), shared), knows, free, mounted), verdict{Close, ShutOut}},
		"an older key has it that nobody knows":             {on("a", active, knows, free, older, mounted), verdict{Close, ShutOut}},
		"a key that is not Berth's has it":                  {on("a", active, knows, free, foreign, mounted), verdict{Wait, HolderUnknown}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) { expect(t, TendRules.Decide(tt.facts), tt.want) })
	}
	expect(t, StageRules.Decide(on("a", active, knows, free, mounted, wanted)), verdict{Done, Mounted})
	if a := TendRules.Decide(on("a", volume(owned(Active), shared), knows, attached(mine), wanted)); a.Reason == SessionRenewed {
		t.Error("a node that has not mounted the volume takes its reservation back")
	}
}
