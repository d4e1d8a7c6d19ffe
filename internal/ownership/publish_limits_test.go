package ownership_test

import (
	"slices"
	"testing"
	"time"

	. "berth.dev/berth/internal/ownership"
)

func entryOf(t *testing.T, v *Volume, node string) Replica {
	t.Helper()
	if v == nil {
		t.Fatal("nothing was recorded")
	}
	e, has := v.Replica(node)
	if !has {
		t.Fatalf("node %s has no entry", node)
	}
	return e
}

func TestAnAttachmentBeginsAsNewAndKeepsWhatItsNodeHasSaid(t *testing.T) {
	expires := func(v *Volume) { v.ExpireAt = now.Add(time.Hour) }
	again := volume(shared, expires, entry("b", func(r *Replica) {
		*r = Replica{Node: "b", State: Removing, Tries: 3, RetryAt: now, Unstaged: e1, Fenced: e1}
	}))
	a := OverseeRules.Decide(overseeing(again, wants("b")))
	if got := entryOf(t, a.Next, "b"); got != (Replica{Node: "b", State: Syncing, Unstaged: e1, Fenced: e1}) || !a.Next.ExpireAt.IsZero() {
		t.Errorf("counted on again is %+v, which expires at %v", got, a.Next.ExpireAt)
	}
	fresh := volume(shared, expires, func(v *Volume) { v.Sharing.MaxShares = 4 })
	a = OverseeRules.Decide(overseeing(fresh, wants("d"), machine("d", there)))
	if got := entryOf(t, a.Next, "d"); got != (Replica{Node: "d", State: Reserved}) || !a.Next.ExpireAt.IsZero() {
		t.Errorf("made is %+v, which expires at %v", got, a.Next.ExpireAt)
	}
}

func TestNoAttachmentIsTakenFromANodeThatNeedsIt(t *testing.T) {
	roomy := func(v *Volume) { v.Sharing.MaxShares = 4 }
	asked := func(v *Volume) { v.FenceRequest = FenceRequest{"c", e2} }
	tests := map[string]struct {
		facts *ControllerFacts
		want  verdict
		goes  string
	}{
		"a share is free, and the node has no slot": {overseeing(volume(owned(Active), shared, roomy), alive, wants("d"), machine("d", full)), verdict{Wait, NoFreeSlot}, ""},
		"all shares are taken":                      {overseeing(volume(owned(Active), shared), alive, wants("d"), machine("d", there)), verdict{Record, WantedHere}, "c"},
		"one shall shut a writer out":               {overseeing(volume(owned(Active), shared, asked), alive, wants("d"), machine("d", there)), verdict{Record, WantedHere}, "b"},
		"a volume of copies is wanted elsewhere":    {overseeing(volume(), wants("d"), machine("d", there)), verdict{Nothing, Settled}, ""},
		"a standby is in another volume's way":      {overseeing(volume(owned(Active), shared, yields), alive, machine("c", inTheWay)), verdict{Record, GivingWay}, "c"},
		"a copy is on a node without a slot":        {overseeing(volume(yields), machine("c", inTheWay)), verdict{Nothing, Settled}, ""},
		"one that is to go already is in the way":   {overseeing(volume(owned(Active), shared, yields, func(v *Volume) { v.Factor = 2 }, state("c", Removing)), alive, machine("c", inTheWay)), verdict{Nothing, Settled}, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			a := OverseeRules.Decide(tt.facts)
			expect(t, a, tt.want)
			if a.Next == nil {
				return
			}
			for _, r := range a.Next.Replicas {
				if (r.State == Removing) != (r.Node == tt.goes) {
					t.Errorf("%s becomes %v", r.Node, r.State)
				}
			}
		})
	}
}

func TestAttachmentsThatNoPodWantsExpireTogether(t *testing.T) {
	idle := volume(shared, func(v *Volume) { v.Sharing.MaxShares = 4 })
	a := OverseeRules.Decide(overseeing(idle))
	expect(t, a, verdict{Record, Unused})
	if a.Next.ExpireAt != now.Add(ClaimWithin+ExpireAfter) {
		t.Errorf("they expire at %v", a.Next.ExpireAt)
	}
	begun := volume(shared, func(v *Volume) { v.ExpireAt = now.Add(ExpireAfter) })
	expect(t, OverseeRules.Decide(overseeing(begun, wants("b"))), verdict{Nothing, Settled})
	begun.ExpireAt = begun.ExpireAt.Add(-1)
	expect(t, OverseeRules.Decide(overseeing(begun, wants("b"))), verdict{Record, WantedHere})
	soon := volume(shared, func(v *Volume) { v.ExpireAt = now.Add(1) })
	expect(t, OverseeRules.Decide(overseeing(soon)), verdict{Nothing, Settled})
	a = OverseeRules.Decide(overseeing(soon, wants("b")))
	expect(t, a, verdict{Record, WantedHere})
	if !a.Next.ExpireAt.IsZero() || slices.ContainsFunc(a.Next.Replicas, func(r Replica) bool { return r.State != Ready }) {
		t.Errorf("wanted again is %+v", a.Next)
	}
	due := volume(shared, func(v *Volume) { v.ExpireAt = now }, state("b", Removing))
	a = OverseeRules.Decide(overseeing(due))
	expect(t, a, verdict{Record, Unused})
	if slices.ContainsFunc(a.Next.Replicas, func(r Replica) bool { return r.State != Removing }) {
		t.Errorf("left is %+v", a.Next.Replicas)
	}
	all := volume(shared, func(v *Volume) { v.ExpireAt = now }, state("a", Removing), state("b", Removing), state("c", Removing))
	expect(t, OverseeRules.Decide(overseeing(all)), verdict{Nothing, Settled})
	if a := OverseeRules.Decide(overseeing(volume(shared, deleting, state("a", Removing), state("b", Removing), state("c", Removing)))); a.Next != nil {
		t.Errorf("of a deleted volume: %s", a.Message())
	}
}

func TestWhichAttachmentGivesItsSlot(t *testing.T) {
	of := func(volume string, edit func(*SlotUse)) SlotUse {
		u := SlotUse{Volume: volume, Standby: true, Yields: true, State: Ready, Others: 1}
		edit(&u)
		return u
	}
	plain := func(*SlotUse) {}
	tests := map[string]struct {
		uses []SlotUse
		want string
	}{
		"none is there":                        {nil, ""},
		"the first by name":                    {[]SlotUse{of("v", plain), of("w", plain)}, "v"},
		"of the volume with the most standbys": {[]SlotUse{of("v", plain), of("w", func(u *SlotUse) { u.Others = 2 })}, "w"},
		"one that is not ready before that":    {[]SlotUse{of("v", func(u *SlotUse) { u.Others = 2 }), of("w", func(u *SlotUse) { u.State = Syncing })}, "w"},
		"one that failed before that":          {[]SlotUse{of("v", func(u *SlotUse) { u.State = Syncing }), of("w", func(u *SlotUse) { u.State = Failed })}, "w"},
		"none that is used":                    {[]SlotUse{of("v", func(u *SlotUse) { u.Standby = false }), of("w", plain)}, "w"},
		"none whose class does not allow it":   {[]SlotUse{of("v", func(u *SlotUse) { u.Yields = false }), of("w", plain)}, "w"},
		"none while another one is on its way": {[]SlotUse{of("v", plain), of("w", func(u *SlotUse) { u.State = Removing })}, ""},
	}
	for name, tt := range tests {
		for range 2 { // and turned
			if got, ok := Yielding(tt.uses); got != tt.want || ok != (tt.want != "") {
				t.Errorf("%s: %q, %t", name, got, ok)
			}
			slices.Reverse(tt.uses)
		}
	}
}

func TestTheKeysOfTwoNodesDiffer(t *testing.T) {
	seen := map[RawKey]Key{}
	for _, k := range []Key{{Node: "ab", Epoch: e1}, {Node: "a", Epoch: e1}, {Node: "a", Epoch: e2}, {Node: "aone", Epoch: e1}, {Node: "ao", Epoch: e1}} {
		for _, fence := range []bool{false, true} {
			k.Fence = fence
			if other, is := seen[k.Raw()]; is {
				t.Errorf("%v and %v are one", k, other)
			}
			seen[k.Raw()] = k
		}
	}
	split := Key{Node: "a", Epoch: e1}
	split.Epoch.ID = "bc"
	joined := Key{Node: "ab", Epoch: split.Epoch}
	if joined.Epoch.ID = "c"; split.Raw() == joined.Raw() {
		t.Error("where the name of the node ends does not count")
	}
	v := volume(owned(Active), shared)
	if n := v.RequestFence("b").RequestFence("b"); len(n.Keys) != len(v.Keys)+1 {
		t.Errorf("a key is listed twice: %v", n.Keys)
	}
}

// The message names the node whose key a disk has, so that an administrator finds that node.
func TestAKeyIsReadFromTheRecordOrFromWhatNodesPromised(t *testing.T) {
	v := volume(owned(Preparing), shared)
	fence := Key{Node: "b", Epoch: e2, Fence: true}
	bare := func(f *NodeFacts) { f.Disk = Disk{Link: Attached, Holder: fence.Raw()}; f.Copy.Points = nil }
	tests := map[string]struct {
		edits []func(*NodeFacts)
		node  string
	}{
		"the record has it":              {[]func(*NodeFacts){attached(fence)}, "b"},
		"the node itself has promised":   {[]func(*NodeFacts){bare}, ""},
		"a peer has promised that epoch": {[]func(*NodeFacts){bare, tells("b", Promise{Epoch: e2, Primary: "a"})}, "b"},
		"a peer has promised another":    {[]func(*NodeFacts){bare, tells("b", Promise{Epoch: e1, Primary: "a"})}, ""},
		"another peer has promised it":   {[]func(*NodeFacts){bare, tells("c", Promise{Epoch: e2, Primary: "a"}), tells("b", Promise{})}, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			record := *v
			a := StageRules.Decide(on("a", &record, append([]func(*NodeFacts){with(promised(v))}, tt.edits...)...))
			expect(t, a, verdict{GiveUp, ShutOut})
			if a.Node != tt.node || a.Epoch.Number != 2 {
				t.Errorf("it is said to be of node %q and epoch %v", a.Node, a.Epoch)
			}
		})
	}
}

func TestACopyLagsBehindWhatTheVolumeHas(t *testing.T) {
	known := func(v *Volume) func(*NodeFacts) { return with(promised(v)) }
	open := volume(owned(Active), entry("c", func(r *Replica) { r.Point = at(e2, 6) }))
	stranger := volume(owned(Active), entry("c", func(r *Replica) { r.Point = at(e3, 9) }))
	next := volume(owned(Active), entry("c", func(r *Replica) { r.Point = at(e2, 4) }))
	a := TendRules.Decide(on("b", open, known(open), alone))
	expect(t, a, verdict{Record, Reporting})
	if got := entryOf(t, a.Next, "b"); got.State != Lagging || got.Point != at(e1, 3) {
		t.Errorf("it reports %+v", got)
	}
	expect(t, TendRules.Decide(on("b", next, known(next), alone)), verdict{Nothing, Settled})
	expect(t, TendRules.Decide(on("b", stranger, known(stranger), alone)), verdict{Nothing, Settled})
}

// plays lets the controller decide and the agents obey, until nothing changes, and tells the end and how often the
// record was written.
func plays(v *Volume, facts ...func(*ControllerFacts)) (end *Volume, last Action, writes int) {
	for writes < 20 {
		if last = OverseeRules.Decide(overseeing(v, facts...)); last.Verb == Record {
			v, writes = last.Next, writes+1
			continue
		}
		obeyed := false
		for i := range v.Replicas {
			e := &v.Replicas[i]
			switch e.State {
			case Removing:
				e.State, obeyed = Gone, true
			case Reserved, Syncing:
				e.State, obeyed = Ready, true
			}
		}
		if !obeyed {
			break
		}
	}
	return v, last, writes
}

// All shares are taken, and a pod is bound to node d besides.
func TestAPodCostsAStandbyOnlyWhereItCanBeServed(t *testing.T) {
	unknown := func(*ControllerFacts) {}
	for name, tt := range map[string]struct {
		node   func(*ControllerFacts)
		had    int
		on     []string
		want   verdict
		writes int
	}{
		"its node has no slot":                {machine("d", full), 3, []string{"a", "b", "c"}, verdict{Wait, NoFreeSlot}, 0},
		"its node is no storage node":         {unknown, 3, []string{"a", "b", "c"}, verdict{Wait, NoFreeSlot}, 0},
		"others make room there":              {machine("d", makesRoom), 3, []string{"a", "b"}, verdict{Wait, NoFreeSlot}, 2},
		"its node has a slot":                 {machine("d", there), 3, []string{"a", "b", "d"}, verdict{Nothing, Settled}, 3},
		"others made no room there after all": {machine("d", full), 2, []string{"a", "b", "c"}, verdict{Wait, NoFreeSlot}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			v := volume(owned(Active), shared)
			v.Replicas = v.Replicas[:tt.had]
			end, last, writes := plays(v, alive, wants("a", "d"), tt.node)
			expect(t, last, tt.want)
			var on []string
			for _, r := range end.Replicas {
				on = append(on, r.Node)
			}
			if !slices.Equal(on, tt.on) || writes != tt.writes {
				t.Errorf("after %d writes it is on %v, want %d and %v", writes, on, tt.writes, tt.on)
			}
		})
	}
}

// A removal names the standby that goes for its own sake, and the pod's node if it goes for that.
func TestTheReasonOfARemovalNamesTheNodeThatItIsAbout(t *testing.T) {
	bad := entry("b", func(r *Replica) { r.State, r.Tries = Failed, 2 })
	for name, test := range map[string]struct {
		facts *ControllerFacts
		want  Why
	}{
		"it failed and is replaced elsewhere": {overseeing(volume(owned(Active), shared, bad), alive, machine("d", there)), Why{Reason: AttachmentFailed, Node: "b", Count: 2}},
		"a pod wants the disk elsewhere":      {overseeing(volume(shared, bad), wants("d"), machine("d", there)), Why{Reason: WantedHere, Node: "d"}},
	} {
		if a := OverseeRules.Decide(test.facts); a.Why != test.want {
			t.Errorf("%s: %+v", name, a.Why)
		}
	}
}

func TestANodeIsAwayOnlyWhileItIsLost(t *testing.T) {
	if (Machine{LostFor: time.Hour}).Away() || (Machine{Lost: true, LostFor: Silence - 1}).Away() || !(Machine{Lost: true, LostFor: Silence}).Away() {
		t.Error("a node that is there, or was lost a moment ago, is away, or one that is lost is not")
	}
}
