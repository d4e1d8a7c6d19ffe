package ownership_test

import (
	"testing"
	"time"

	. "berth.dev/berth/internal/ownership"
)

// unlisted makes a node one that the record alone knows, and that was not heard of for a while.
func unlisted(node string, silent time.Duration) func(*ControllerFacts) {
	return func(f *ControllerFacts) {
		for i := range f.Nodes {
			if f.Nodes[i].Name == node {
				f.Nodes[i] = Machine{Name: node, Unlisted: true, Lost: silent > 0, LostFor: silent}
			}
		}
	}
}

func elsewhere(f *ControllerFacts) {
	f.Nodes = append(f.Nodes, Machine{Name: "d", Fits: true, Slots: 1})
}

func inPeace(f *ControllerFacts) { f.Witnesses, f.SuspectFor = nil, 0 }

// An administrator has deleted the Node of a standby.
func TestTheAttachmentOfANodeThatIsNoMoreGoes(t *testing.T) {
	disk := volume(owned(Active), shared)
	leaving := volume(owned(Active), shared, state("b", Removing))
	onB := func(p Phase, edits ...func(*Volume)) *Volume {
		return volume(append([]func(*Volume){owned(p), shared, state("b", Removing), func(v *Volume) { v.Primary.Node = "b" }}, edits...)...)
	}
	deleting := func(v *Volume) { v.Deleting = true }
	for name, test := range map[string]struct {
		v     *Volume
		edits []func(*ControllerFacts)
		want  verdict
		node  string
		state State
	}{
		"it goes":                                         {disk, []func(*ControllerFacts){unlisted("b", time.Hour)}, verdict{Record, NodeForsaken}, "b", Removing},
		"also if there is no other place":                 {disk, []func(*ControllerFacts){unlisted("b", time.Hour), lost("d")}, verdict{Record, NodeForsaken}, "b", Removing},
		"not while a pod is bound to it":                  {disk, []func(*ControllerFacts){unlisted("b", time.Hour), wants("b")}, verdict{Nothing, Settled}, "", 0},
		"not while it may come back":                      {disk, []func(*ControllerFacts){unlisted("b", RebuildDelay-1)}, verdict{Nothing, Settled}, "", 0},
		"not while its machine is heard of":               {disk, []func(*ControllerFacts){unlisted("b", 0)}, verdict{Nothing, Settled}, "", 0},
		"one that is only lost stays":                     {disk, []func(*ControllerFacts){lost("b")}, verdict{Nothing, Settled}, "", 0},
		"its removal ends":                                {leaving, []func(*ControllerFacts){unlisted("b", time.Hour)}, verdict{Record, NodeForsaken}, "b", Gone},
		"its removal ends by its node while that is lost": {leaving, []func(*ControllerFacts){lost("b")}, verdict{Nothing, Settled}, "", 0},
		"and while its machine is heard of":               {leaving, []func(*ControllerFacts){unlisted("b", 0)}, verdict{Nothing, Settled}, "", 0},
		"that of a writer does not go":                    {onB(Active, state("b", Ready)), []func(*ControllerFacts){unlisted("b", time.Hour)}, verdict{Nothing, Settled}, "", 0},
		"that of a writer that was fenced ends":           {onB(Fenced), []func(*ControllerFacts){unlisted("b", time.Hour)}, verdict{Record, NodeForsaken}, "b", Gone},
		"and that of a volume that is deleted":            {onB(Fenced, deleting), []func(*ControllerFacts){unlisted("b", time.Hour)}, verdict{Record, NodeForsaken}, "b", Gone},
		"that of a writer that let go ends":               {onB(Released), []func(*ControllerFacts){unlisted("b", time.Hour)}, verdict{Record, NodeForsaken}, "b", Gone},
		"nothing ends while the brake holds":              {leaving, []func(*ControllerFacts){unlisted("b", time.Hour), lost("c", "d")}, verdict{Wait, BrakeHeld}, "", 0},
		"nor for a controller that has just begun":        {leaving, []func(*ControllerFacts){unlisted("b", time.Hour), func(f *ControllerFacts) { f.Watching = 0 }}, verdict{Wait, BrakeHeld}, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			edits := append([]func(*ControllerFacts){inPeace, elsewhere, func(f *ControllerFacts) { f.Wanted = []string{"a"} }}, test.edits...)
			a := OverseeRules.Decide(overseeing(test.v, edits...))
			expect(t, a, test.want)
			if a.Next == nil {
				return
			}
			if e, has := a.Next.Replica(test.node); !has || e.State != test.state {
				t.Errorf("the entry of %s is %v", test.node, e)
			}
		})
	}
}

func TestACopyOfANodeThatIsNoMoreIsReplacedAndNeverEnds(t *testing.T) {
	gone := unlisted("b", time.Hour)
	a := OverseeRules.Decide(overseeing(volume(owned(Active)), inPeace, elsewhere, gone))
	expect(t, a, verdict{Record, TooFewReplicas})
	for _, v := range []*Volume{
		volume(owned(Active), state("b", Removing)),
		volume(owned(Released), state("b", Removing), func(v *Volume) { v.Deleting = true }, state("a", Removing), state("c", Removing)),
	} {
		if a := OverseeRules.Decide(overseeing(v, inPeace, gone)); a.Verb == Record {
			if e, _ := a.Next.Replica("b"); e.State != Removing {
				t.Errorf("its copy is %v: %s", e.State, a.Message())
			}
		}
	}
}

// The first standby by name is the one that is asked, and its Node was deleted long ago.
func TestANodeThatIsNoMoreShutsNobodyOut(t *testing.T) {
	disk := volume(owned(Active), shared)
	for name, v := range map[string]*Volume{"nobody was asked": disk, "it was asked": disk.RequestFence("b")} {
		t.Run(name, func(t *testing.T) {
			a := OverseeRules.Decide(overseeing(v, unlisted("b", time.Minute), lost("a")))
			expect(t, a, verdict{Record, FenceRequested})
			if a.Next.FenceRequest.Executor != "c" {
				t.Errorf("node %s is asked", a.Next.FenceRequest.Executor)
			}
		})
	}
}

func TestNodesThatAreNoMoreHoldNoBrake(t *testing.T) {
	gone := Machine{Name: "z", Unlisted: true, Lost: true}
	for name, test := range map[string]struct {
		nodes []Machine
		holds bool
	}{
		"one that is lost, and two that are no more":       {[]Machine{{Lost: true}, {}, {}, gone, gone}, false},
		"two of three, and as many that are heard of":      {[]Machine{{Lost: true}, {Lost: true}, {}, {Unlisted: true}, {Unlisted: true}, {Unlisted: true}}, true},
		"two of six, one more would do, and it is no more": {[]Machine{{Lost: true}, {Lost: true}, {}, {}, {}, {}, gone}, false},
	} {
		if got := BrakeHolds(test.nodes); got != test.holds {
			t.Errorf("%s: the brake holds is %v", name, got)
		}
	}
}
