package attach

import (
	"slices"
	"testing"

	"berth.dev/berth/internal/ownership"
)

// TestTheOrderInWhichNodesAreTried: volume v is on node n0.
func TestTheOrderInWhichNodesAreTried(t *testing.T) {
	zone := func(name string) func(*Node) { return func(n *Node) { n.Labels[topologyZone] = name } }
	for name, test := range map[string]struct {
		play func(*Board)
		want []string
	}{
		"by name": {func(*Board) {}, []string{"n0", "n1", "n2"}},
		"the node with more slots first": {
			func(b *Board) { b.good("n2", 5) }, []string{"n0", "n2", "n1"}},
		"the zone without a replica first": {
			func(b *Board) {
				b.good("n0", 4, zone("a"))
				b.good("n1", 4, zone("a"))
				b.good("n2", 4, zone("b"))
			}, []string{"n0", "n2", "n1"}},
		"nodes without a zone are not in one zone": {
			func(b *Board) {
				b.good("n2", 4, zone("b"))
			}, []string{"n0", "n1", "n2"}},
		"a replica that goes is in no zone": {
			func(b *Board) {
				b.good("n1", 4, zone("a"))
				b.good("n2", 4, zone("b"))
				b.disk("v", []string{"n0", "n3"}, func(v *Volume) { v.Entries["n3"] = ownership.Removing })
				b.good("n3", 4, zone("a"))
			}, []string{"n0", "n1", "n2"}},
		"a replica on a node that is leaving is in no zone": {
			func(b *Board) {
				b.good("n1", 4, zone("a"))
				b.good("n2", 4, zone("b"))
				b.disk("v", []string{"n0", "n3"})
				b.good("n3", 4, zone("a"), func(n *Node) { n.Cordoned = true })
			}, []string{"n0", "n1", "n2"}},
		"the node last on which the replica goes": {
			func(b *Board) {
				b.disk("v", []string{"n0", "n1"}, func(v *Volume) { v.Entries["n1"] = ownership.Removing })
			}, []string{"n0", "n2", "n1"}},
		"none is preferred for a volume that has its standby": {
			func(b *Board) {
				b.good("n1", 1)
				b.good("n2", 1)
				b.disk("v", []string{"n0", "n1"})
				b.disk("log", []string{"n0"})
				b.pod("p", "n0", []string{"v", "log"})
			}, []string{"n0", "n1", "n2"}},
	} {
		t.Run(name, func(t *testing.T) {
			b, nodes := New(), names("n", 3)
			for _, node := range nodes {
				b.good(node, 4)
			}
			b.disk("v", []string{"n0"})
			test.play(b)
			places := b.Places("v", nodes)
			slices.SortFunc(nodes, func(x, y string) int { return places[x].Rank - places[y].Rank })
			if !slices.Equal(nodes, test.want) {
				t.Errorf("the order is %v, want %v", nodes, test.want)
			}
		})
	}
}

// TestAStandbyGoesWhereTheOtherVolumesOfThePodFindRoomAsWell: the pod of volumes v and log runs on n0. Node
// n1 has room for one of them, and n2 has room for both.
func TestAStandbyGoesWhereTheOtherVolumesOfThePodFindRoomAsWell(t *testing.T) {
	three := func(v *Volume) { v.MaxShares = 3 }
	for name, test := range map[string]struct {
		play func(*Board)
		want string
	}{
		"one pod":                   {func(*Board) {}, "n2"},
		"a second pod on that node": {func(b *Board) { b.pod("q", "n0", []string{"log", "v"}) }, "n2"},
		"a pod without a node":      {func(b *Board) { b.pod("q", "", []string{"log", "v"}) }, "n2"},
		"the volume leaves a node": {func(b *Board) {
			b.SetNode("n3", func(n *Node) { n.Cordoned = false })
			b.disk("v", []string{"n0", "n3"}, three, func(v *Volume) { v.Entries["n3"] = ownership.Removing })
		}, "n2"},
		"the other volume leaves a node": {func(b *Board) {
			b.SetNode("n3", func(n *Node) { n.Cordoned = false })
			b.disk("log", []string{"n0", "n3"}, three, func(v *Volume) { v.Entries["n3"] = ownership.Removing })
		}, "n2"},
		"the other volume leaves a node, and has no share till then": {func(b *Board) {
			b.disk("log", []string{"n0", "n3"}, func(v *Volume) { v.Entries["n3"] = ownership.Removing })
		}, "n1"},
		"the other volume leaves the node with room for one": {func(b *Board) {
			b.SetNode("n1", func(n *Node) { n.Limit = 2 })
			b.disk("log", []string{"n0", "n1"}, three, func(v *Volume) { v.Entries["n1"] = ownership.Removing })
		}, "n2"},
		"a pod of the other volume waits there": {func(b *Board) { b.pod("q", "n2", []string{"log"}) }, "n2"},
		"a pod of the other volume waits on a node that is leaving": {func(b *Board) {
			b.disk("log", []string{"n0"}, three)
			b.pod("q", "n3", []string{"log"})
		}, "n2"},
		"a pod of the other volume waits there for its last share": {func(b *Board) { b.pod("q", "n3", []string{"log"}) }, "n1"},
		"a pod of the volume waits where more is free": {func(b *Board) {
			b.SetNode("n3", func(n *Node) { n.Cordoned = false })
			b.disk("v", []string{"n0"}, three, func(v *Volume) { v.Factor = 3 })
			b.pod("q", "n3", []string{"v"})
		}, "n1"},
		"the other volume has its standby":           {func(b *Board) { b.disk("log", []string{"n0", "n2"}) }, "n2"},
		"the other volume has its standby elsewhere": {func(b *Board) { b.disk("log", []string{"n0", "n4"}) }, "n1"},
		"pods of the other volume wait elsewhere": {func(b *Board) {
			for _, pod := range []string{"q", "r", "s"} {
				b.pod(pod, "n4", []string{"log"})
			}
		}, "n1"},
	} {
		t.Run(name, func(t *testing.T) {
			b, nodes := New(), names("n", 4)
			for i, slots := range []int{9, 1, 2, 9} {
				b.good(nodes[i], slots)
			}
			b.SetNode("n0", func(n *Node) { n.Labels[topologyZone] = "a" })
			b.SetNode("n2", func(n *Node) { n.Labels[topologyZone] = "a" })
			b.SetNode("n3", func(n *Node) { n.Cordoned = true })
			b.disk("v", []string{"n0"})
			b.disk("log", []string{"n0"})
			b.pod("p", "n0", []string{"v", "log"})
			test.play(b)
			if got, _ := b.rebuilds("v", nodes); got != test.want {
				t.Errorf("it goes to %q, want %s", got, test.want)
			}
		})
	}
}

func TestAttachmentsMakeWayOneAfterAnother(t *testing.T) {
	b := New()
	b.good("n", 2)
	yields := func(v *Volume) { v.Yields = true }
	b.disk("v1", []string{"other", "n"}, yields)
	b.disk("v2", []string{"other", "n"}, yields)
	b.disk("w", nil)
	b.pod("p", "n", []string{"w"})
	ways := func() (names []string) {
		for _, name := range []string{"v1", "v2"} {
			if b.Places(name, []string{"n"})["n"].GiveWay {
				names = append(names, name)
			}
		}
		return names
	}
	if got := ways(); !slices.Equal(got, []string{"v1"}) {
		t.Errorf("%v make way for one pod", got)
	}
	b.disk("v1", []string{"other", "n"}, yields, func(v *Volume) { v.Entries["n"] = ownership.Removing })
	if got := ways(); len(got) != 0 {
		t.Errorf("%v make way while v1 goes", got)
	}
}

// TestTheVolumeWithMoreStandbysMakesWay: both volumes have an attachment that yields on node n.
func TestTheVolumeWithMoreStandbysMakesWay(t *testing.T) {
	for name, test := range map[string]struct {
		state ownership.State
		want  bool
	}{
		"the other volume has another standby":                {ownership.Ready, false},
		"the other volume has another standby, which goes":    {ownership.Removing, true},
		"the other volume has another standby, which is gone": {ownership.Gone, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := New()
			b.good("n", 2)
			b.disk("v", []string{"n0", "n"}, func(v *Volume) { v.Yields = true })
			b.disk("v2", []string{"n0", "n", "n1"}, func(v *Volume) { v.Yields, v.Entries["n1"] = true, test.state })
			b.disk("w", nil)
			b.pod("p", "n", []string{"w"})
			if got := b.Places("v", []string{"n"})["n"].GiveWay; got != test.want {
				t.Errorf("v makes way: %v", got)
			}
		})
	}
}

// TestRoomIsMadeForAVolumeWhoseDiskGetsAShare: a pod of volume w is bound to node n with two slots, and all shares of w
// are taken elsewhere. Volumes v1 and v2 have attachments on n.
func TestRoomIsMadeForAVolumeWhoseDiskGetsAShare(t *testing.T) {
	yields := func(v *Volume) { v.Yields = true }
	for name, test := range map[string]struct {
		play func(*Board)
		want bool
	}{
		"a slot is free":         {func(b *Board) { b.good("n", 3) }, true},
		"none is free or yields": {func(*Board) {}, false},
		"no pod is bound there":  {func(b *Board) { b.good("n", 3); b.DropPod("p") }, false},
		"a standby yields":       {func(b *Board) { b.disk("v1", []string{"n0", "n"}, yields) }, true},
		"an owner never yields":  {func(b *Board) { b.disk("v1", []string{"n", "n0"}, yields) }, false},
		"one is on its way out": {func(b *Board) {
			b.disk("v1", []string{"n0", "n"}, func(v *Volume) { v.Entries["n"] = ownership.Removing })
		}, true},
		"another volume comes first": {func(b *Board) {
			b.disk("v1", []string{"n0", "n"}, yields)
			b.disk("x", nil)
			b.pod("q", "n", []string{"x"})
		}, false},
		"there is room for both": {func(b *Board) {
			b.disk("v1", []string{"n0", "n"}, yields)
			b.disk("v2", []string{"n0", "n"}, yields)
			b.disk("x", nil)
			b.pod("q", "n", []string{"x"})
		}, true},
		"another one that has no share does not come first": {func(b *Board) {
			b.disk("v1", []string{"n0", "n"}, yields)
			b.disk("a", []string{"n0", "n1"})
			b.pod("q", "n", []string{"a"})
		}, true},
		"it has the share now": {func(b *Board) {
			b.disk("v1", []string{"n0", "n"}, yields)
			b.disk("w", []string{"n0"})
			b.disk("x", nil)
			b.pod("q", "n", []string{"x"})
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := New()
			b.good("n", 2)
			b.disk("v1", []string{"n0", "n"})
			b.disk("v2", []string{"n0", "n"})
			b.disk("w", []string{"n0", "n1"})
			b.pod("p", "n", []string{"w"})
			test.play(b)
			if got := b.Places("w", []string{"n"})["n"].MakesRoom; got != test.want {
				t.Errorf("room is made: %v", got)
			}
		})
	}
}
