package ownership_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/internal/lineage"
	. "berth.dev/berth/internal/ownership"
)

// answers replaces what a peer says of its copy.
func answers(node string, edit func(*Peer)) func(*NodeFacts) {
	return func(f *NodeFacts) {
		for i := range f.Peers {
			if f.Peers[i].Node == node {
				edit(&f.Peers[i])
			}
		}
	}
}

// A copy is destroyed only beside enough others that have all of it.
func TestACopyGoesOnlyIfEnoughOthersHaveAllOfIt(t *testing.T) {
	two := func(v *Volume) { v.Factor = 2 }
	v := volume(state("c", Removing), two)
	active := volume(owned(Active), state("c", Removing), two)
	newest := append(points(e1, 1, 2, 3), at(e2, 5))
	few := func(p *Peer) { p.Copy.Points = points(e1, 1, 2) }
	stranger := func(f *NodeFacts) { f.Peers[0].Node = "d" }
	tests := map[string]struct {
		facts *NodeFacts
		want  verdict
	}{
		"both others have it":                  {on("c", v, with(promised(v))), verdict{Condemn, Unneeded}},
		"one of them is behind":                {on("c", v, with(promised(v)), answers("a", few)), verdict{Record, TooFewOthers}},
		"one of them is in the trash":          {on("c", v, with(promised(v)), answers("a", func(p *Peer) { p.Copy.Condemned = true })), verdict{Record, TooFewOthers}},
		"one of them has nothing":              {on("c", v, with(promised(v)), answers("a", func(p *Peer) { p.Copy.Points = nil })), verdict{Record, TooFewOthers}},
		"one of them is to go, too":            {on("c", volume(state("c", Removing), state("a", Removing), two), with(promised(v))), verdict{Record, TooFewOthers}},
		"the record does not know one of them": {on("c", v, with(promised(v)), stranger), verdict{Record, TooFewOthers}},
		"none has the recovery point":          {on("c", v, with(promised(v), has(points(e1, 1, 2)...)), answers("a", few), answers("b", few)), verdict{Record, TooFewOthers}},
		"one of them lacks what it has of the open epoch": {on("c", active, with(promised(active), has(newest...)), answers("a", func(p *Peer) { p.Copy.Points = newest }), answers("b", reaches(e2, 4))),
			verdict{Record, TooFewOthers}},
		"none has anything, itself included": {on("c", active, with(promised(active), has()), answers("a", func(p *Peer) { p.Copy.Points = nil }), answers("b", func(p *Peer) { p.Copy.Points = nil })),
			verdict{Record, TooFewOthers}},
		"it was never filled, and no other answers":            {on("c", v, unfilled, alone), verdict{Condemn, Unneeded}},
		"it only promised, and no other answers":               {on("c", v, with(promised(v), has()), alone), verdict{Record, TooFewOthers}},
		"it was never filled, and is in the trash":             {on("c", v, unfilled, alone, func(f *NodeFacts) { f.Copy.Condemned, f.Copy.DestroyAt = true, now }), verdict{Destroy, Unneeded}},
		"it was never filled, and its volume is being deleted": {on("c", volume(state("c", Removing), deleting), unfilled), verdict{Condemn, VolumeDeleting}},
		"it is the only one, and mounted":                      {on("a", volume(oneCopy, state("a", Removing)), mounted), verdict{Record, CopyInUse}},
		"it is the owner's":                                    {on("a", volume(owned(Active), state("a", Removing), two), wanted, with(promised(active), opened(e2))), verdict{Record, CopyInUse}},
		"it is the owner's, and its volume is being deleted": {on("a", volume(owned(Active), state("a", Removing), deleting), with(promised(active), opened(e2)), mounted),
			verdict{Record, CopyInUse}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			a := TendRules.Decide(tt.facts)
			expect(t, a, tt.want)
			if a.Next == nil {
				return
			}
			if e, _ := a.Next.Replica(tt.facts.Me); e.State != Syncing {
				t.Errorf("its entry becomes %v", e.State)
			}
		})
	}
}

// unfilled gives the node a copy that was made and holds nothing yet: at most a part of its first stream.
func unfilled(f *NodeFacts) { f.Copy = Copy{Size: 1} }

func TestACopyThatWentIsRecordedAsGone(t *testing.T) {
	for name, v := range map[string]*Volume{"surplus": volume(state("c", Removing)), "of a deleted volume": volume(state("c", Removing), deleting)} {
		a := TendRules.Decide(on("c", v, noCopy))
		expect(t, a, verdict{Record, CopyGone})
		if e, _ := a.Next.Replica("c"); e.State != Gone {
			t.Errorf("%s: its entry becomes %v", name, e.State)
		}
	}
}

func TestADeletedVolumesCopyGoesWhenTheRecordSaysSo(t *testing.T) {
	if a := TendRules.Decide(on("b", volume(deleting), with(promised(volume())))); a.Verb == Condemn {
		t.Errorf("a copy that is not to go yet: %s", a.Message())
	}
	if a := TendRules.Decide(on("b", volume(deleting), with(promised(volume()), func(c *Copy) { c.Condemned = true }))); a.Verb == Reprieve {
		t.Errorf("a copy in the trash is taken out of it: %s", a.Message())
	}
}

func TestAPeerConfirmsWhatItHasAndWhatFollowsFromIt(t *testing.T) {
	other := replica(has(at(e3, 9)))
	gone := replica(func(c *Copy) { c.Exists = false })
	whole := replica()
	for name, tt := range map[string]struct {
		copy *Copy
		of   lineage.Point
		want bool
	}{
		"a point that it has, of a history that it promised nothing about": {&other, at(e3, 9), true},
		"a point of another history with a lower number":                   {&whole, at(e3, 2), false},
		"a copy that is not there any more":                                {&gone, at(e1, 3), false},
	} {
		if _, ok := Confirm(tt.copy, "b", tt.of, now); ok != tt.want {
			t.Errorf("%s: %t", name, ok)
		}
	}
}

// A point that is dropped too early costs a full copy, or the volume its recovery point.
func TestOnlyPointsThatNobodyNeedsAreDropped(t *testing.T) {
	one := func(f *NodeFacts) { f.Keep = 1 }
	five := points(e1, 1, 2, 3, 4, 5)
	at5 := func(v *Volume) {
		v.RecoveryPoint = at(e1, 5)
		for i := range v.Replicas {
			v.Replicas[i].Point = at(e1, 5)
		}
	}
	hold := func(points []lineage.Point) func(*NodeFacts) {
		return func(f *NodeFacts) {
			for i := range f.Peers {
				f.Peers[i].Copy.Points = points
			}
		}
	}
	all := hold(five)
	open := volume(func(v *Volume) { v.RecoveryPoint = at(e1, 2) }, owned(Active))
	spread := append(points(e1, 1, 2), at(e2, 3), at(e2, 4), at(e2, 5))
	for i := range open.Replicas {
		open.Replicas[i].Point = at(e2, 5)
	}
	v := volume(at5)
	gone := volume(at5, func(v *Volume) { v.Replicas = append(v.Replicas, Replica{Node: "d", State: Gone, Point: at(e1, 2)}) })
	silent := func(p lineage.Point) *Volume {
		return volume(at5, func(v *Volume) { v.Replicas = append(v.Replicas, Replica{Node: "d", State: Ready, Point: p}) })
	}
	away, ahead, empty := silent(at(e1, 2)), silent(at(e1, 99)), silent(lineage.Point{})
	ten, long := points(e1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10), silent(at(e1, 2))
	long.RecoveryPoint = at(e1, 10)
	tests := map[string]struct {
		facts *NodeFacts
		want  []lineage.Point
	}{
		"all others have the newest":                         {on("b", v, with(promised(v), has(five...)), all, one), points(e1, 1, 2, 3)},
		"another goes on from an older one":                  {on("b", v, with(promised(v), has(five...)), all, one, answers("c", func(p *Peer) { p.Copy.Points = points(e1, 2) })), points(e1, 1, 3)},
		"one that does not answer has an older":              {on("b", away, with(promised(away), has(five...)), all, one), points(e1, 1)},
		"one that does not answer may have the next two":     {on("b", long, with(promised(long), has(ten...)), hold(ten), one), points(e1, 1, 5, 6, 7, 8)},
		"what one that does not answer reported is not held": {on("b", long, with(promised(long), has(append(points(e1, 1), ten[2:]...)...)), hold(ten), one), points(e1, 1, 6, 7, 8)},
		"one that does not answer has a newer one":           {on("b", ahead, with(promised(ahead), has(five...)), all, one), points(e1, 1, 2, 3)},
		"one that does not answer never had any":             {on("b", empty, with(promised(empty), has(five...)), all, one), points(e1, 1, 2, 3)},
		"one that is gone needs none":                        {on("b", gone, with(promised(gone), has(five...)), all, one), points(e1, 1, 2, 3)},
		"a peer has asked for one":                           {on("b", v, with(promised(v), has(five...), func(c *Copy) { c.Holds = []Hold{{For: "c", Point: at(e1, 2), Until: now.Add(1)}} }), all, one), points(e1, 1, 3)},
		"a peer had asked for one":                           {on("b", v, with(promised(v), has(five...), func(c *Copy) { c.Holds = []Hold{{For: "c", Point: at(e1, 2), Until: now}} }), all, one), points(e1, 1, 2, 3)},
		"the open epoch began at one":                        {on("b", open, with(promised(open), has(spread...)), hold(spread), one), []lineage.Point{at(e1, 1), at(e2, 3)}},
		"each is needed":                                     {on("b", v, with(promised(v), has(points(e1, 4, 5)...)), all, func(f *NodeFacts) { f.Keep = 0 }, answers("c", func(p *Peer) { p.Copy.Points = points(e1, 4) })), nil},
		"there are fewer than are to be kept":                {on("b", v, with(promised(v), has(at(e1, 5))), all), nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			a := TendRules.Decide(tt.facts)
			if tt.want == nil {
				expect(t, a, verdict{Nothing, Settled})
				return
			}
			expect(t, a, verdict{Drop, NotNeeded})
			if diff := cmp.Diff(tt.want, a.Points); diff != "" {
				t.Error(diff)
			}
		})
	}
}
