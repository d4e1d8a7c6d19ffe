package attach

import (
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"berth.dev/berth/internal/ownership"
)

const topologyZone = corev1.LabelTopologyZone

// reaches is the affinity of a PersistentVolume to a zone, nil for none.
func reaches(zone string) *nodeaffinity.NodeSelector {
	if zone == "" {
		return nil
	}
	s, err := nodeaffinity.NewNodeSelector(&corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: topologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}},
	}}})
	if err != nil {
		panic(err)
	}
	return s
}

func TestWhyANodeMayNotGetAnAttachment(t *testing.T) {
	dedicated := corev1.Taint{Key: "dedicated", Value: "db", Effect: corev1.TaintEffectNoSchedule}
	tolerates := func(p *Pod) {
		p.Tolerations = []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}}
	}
	everything := func(p *Pod) { p.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} }
	for name, test := range map[string]struct {
		node func(*Node)
		pods []func(*Pod)
		want string
	}{
		"nothing is wrong":                       {func(*Node) {}, nil, ""},
		"the Node was deleted":                   {func(n *Node) { n.Exists = false }, nil, "NodeGone"},
		"the Node is not ready":                  {func(n *Node) { n.Ready = false }, nil, "NodeNotReady"},
		"the Node is cordoned":                   {func(n *Node) { n.Cordoned = true }, []func(*Pod){everything}, "NodeCordoned"},
		"no driver is registered":                {func(n *Node) { n.Registered = false }, nil, "NoDriver"},
		"the guard is silent":                    {func(n *Node) { n.Guarded = false }, nil, "NoGuard"},
		"the volume does not reach it":           {func(n *Node) { n.Labels[topologyZone] = "b" }, nil, "OutOfReach"},
		"a taint, and no pod":                    {func(n *Node) { n.Taints = []corev1.Taint{dedicated} }, nil, "Tainted"},
		"a taint that the pod tolerates":         {func(n *Node) { n.Taints = []corev1.Taint{dedicated} }, []func(*Pod){tolerates}, ""},
		"a taint that one of two pods tolerates": {func(n *Node) { n.Taints = []corev1.Taint{dedicated} }, []func(*Pod){tolerates, func(*Pod) {}}, "Tainted"},
		"a taint that only prefers":              {func(n *Node) { n.Taints = []corev1.Taint{{Key: "x", Effect: corev1.TaintEffectPreferNoSchedule}} }, nil, ""},
		"out of service, and a pod tolerates all": {func(n *Node) {
			n.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute}}
		}, []func(*Pod){everything}, "Tainted"},
		"a taint that is tolerated for a time": {func(n *Node) { n.Taints = []corev1.Taint{{Key: "x", Effect: corev1.TaintEffectNoExecute}} }, []func(*Pod){func(p *Pod) {
			p.Tolerations = []corev1.Toleration{{Key: "x", Operator: corev1.TolerationOpExists, TolerationSeconds: new(int64(300))}}
		}}, "Tainted"},
		"the pod's selector names another node": {func(*Node) {}, []func(*Pod){func(p *Pod) {
			p.Required = nodeaffinity.NewRequiredNodeAffinity(map[string]string{corev1.LabelHostname: "other"}, nil)
		}}, "PodsElsewhere"},
	} {
		t.Run(name, func(t *testing.T) {
			b := New()
			b.good("n", 1, func(n *Node) { n.Labels[topologyZone] = "a" }, test.node)
			b.disk("v", nil)
			pv := b.bounds["pv-v"]
			pv.Reach = reaches("a")
			b.SetBound("pv-v", pv)
			for i, change := range test.pods {
				b.pod(names("p", i+1)[i], "", []string{"v"}, change)
			}
			p := b.Places("v", []string{"n"})["n"]
			if p.Reason != test.want || (p.Message == "") != (test.want == "") || p.Fits() != (test.want == "") {
				t.Errorf("got %+v, want %q", p, test.want)
			}
		})
	}
}

func TestANodeThatTheBoardDoesNotKnowIsNoPlace(t *testing.T) {
	b := New()
	b.disk("v", nil)
	if p := b.Places("v", []string{"n"})["n"]; p.Reason != "NodeGone" || p.Slots != 0 {
		t.Errorf("got %+v", p)
	}
}

func TestSlotsAreCountedFromTheRecordsOfAllVolumes(t *testing.T) {
	b := New()
	b.good("n", 0)
	b.disk("v", nil)
	slots := func(volume string) int { return b.Places(volume, []string{"n"})["n"].Slots }
	if got := slots("v"); got != DefaultSlots {
		t.Errorf("a node without a limit has %d slots", got)
	}
	b.SetNode("n", func(n *Node) { n.Limit = 4 })
	b.disk("going", []string{"n"}, func(v *Volume) { v.Entries["n"] = ownership.Removing })
	if got := slots("v"); got != 3 {
		t.Errorf("an attachment that has not gone takes no slot: %d are left of 4", got)
	}
	b.disk("a", nil)
	b.disk("b", nil)
	b.pod("pa", "n", []string{"a"})
	b.pod("pb", "n", []string{"b"})
	for volume, want := range map[string]int{"v": 1, "a": 3, "b": 2} {
		if got := slots(volume); got != want {
			t.Errorf("%s counts %d slots, want %d", volume, got, want)
		}
	}
	b.disk("a", []string{"x", "y"}) // all shares are taken: the others come first
	for volume, want := range map[string]int{"v": 1, "a": 2, "b": 3} {
		if got := slots(volume); got != want {
			t.Errorf("%s counts %d slots, want %d", volume, got, want)
		}
	}
	b.DropPod("pa")
	b.DropPod("pb")
	b.DropVolume("going")
	if got := slots("v"); got != 4 {
		t.Errorf("%d slots are left of 4", got)
	}
}

func TestAClaimOfTheSameNameDoesNotUseTheVolumeOfTheOneBefore(t *testing.T) {
	b := New()
	b.good("n", 4)
	b.disk("v", nil)
	b.SetClaim("shop/v", Claim{UID: "another", Volume: "pv-v"})
	b.pod("p", "n", []string{"v"})
	if got := b.waiting("n"); len(got) != 0 {
		t.Errorf("%v wait", got)
	}
}

func TestAStandbyGoesToAnotherZoneAndThenWhereMoreIsFree(t *testing.T) {
	b := New()
	for name, zone := range map[string]string{"a0": "a", "a1": "a", "b0": "b", "b1": "b"} {
		b.good(name, 4, func(n *Node) { n.Labels[topologyZone] = zone })
	}
	nodes := []string{"a0", "a1", "b0", "b1"}
	b.disk("other", []string{"b0"})
	b.disk("v", []string{"a0"})
	if node, _ := b.rebuilds("v", nodes); node != "b1" {
		t.Errorf("it goes to %s", node)
	}
}

func TestAStandbyHeedsThePodsOfOtherVolumes(t *testing.T) {
	for name, test := range map[string]struct {
		play func(*Board)
		want string
	}{
		"nothing else": {func(*Board) {}, "n1"},
		"a volume of the same pod finds room only elsewhere": {func(b *Board) {
			b.disk("log", []string{"n0"})
			b.pod("p", "n0", []string{"v", "log"})
		}, "n2"},
		"a volume of the same pod waits for its only attachment": {func(b *Board) {
			b.disk("log", nil, func(v *Volume) { v.Factor = 1 })
			b.pod("p", "n0", []string{"v", "log"})
		}, "n1"},
		"a pod waits for the slot": {func(b *Board) {
			b.disk("w", nil)
			b.pod("p", "n1", []string{"w"})
		}, "n2"},
		"a pod waits for one of two slots, and both volumes find room elsewhere only": {func(b *Board) {
			b.SetNode("n1", func(n *Node) { n.Limit = 2 })
			b.disk("w", nil)
			b.pod("p", "n1", []string{"w"})
			b.disk("log", []string{"n0"})
			b.pod("q", "n0", []string{"v", "log"})
		}, "n2"},
	} {
		t.Run(name, func(t *testing.T) {
			b := New()
			b.good("n0", 9)
			b.good("n1", 1, func(n *Node) { n.Labels[topologyZone] = "b" })
			b.good("n2", 2)
			for _, node := range []string{"n0", "n2"} {
				b.SetNode(node, func(n *Node) { n.Labels[topologyZone] = "a" })
			}
			b.disk("v", []string{"n0"})
			test.play(b)
			if got, _ := b.rebuilds("v", []string{"n0", "n1", "n2"}); got != test.want {
				t.Errorf("it goes to %q, want %s", got, test.want)
			}
		})
	}
}

func TestWhichAttachmentMakesWay(t *testing.T) {
	yields := func(v *Volume) { v.Yields = true }
	for name, test := range map[string]struct {
		change func(*Volume)
		want   bool
	}{
		"a standby that yields":             {yields, true},
		"a standby that does not":           {func(*Volume) {}, false},
		"the owner's":                       {func(v *Volume) { v.Yields, v.Owners = true, []string{"n"} }, false},
		"of the standby that fences":        {func(v *Volume) { v.Yields, v.Executors = true, []string{"n"} }, false},
		"one on its way out":                {func(v *Volume) { v.Yields = true; v.Entries["n"] = ownership.Removing }, false},
		"of a volume that is being deleted": {func(v *Volume) { v.Yields, v.Deleting = true, true }, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := New()
			b.good("n", 1)
			b.disk("v", []string{"other", "n"}, test.change)
			b.disk("w", nil)
			way := func() bool { return b.Places("v", []string{"n"})["n"].GiveWay }
			if way() {
				t.Error("it makes way for nothing")
			}
			b.disk("taken", []string{"other", "another"})
			b.pod("o", "n", []string{"taken"})
			if way() {
				t.Error("it makes way for a volume all shares of which are taken")
			}
			b.pod("p", "n", []string{"w"})
			if got := way(); got != test.want {
				t.Errorf("it makes way: %v", got)
			}
			b.pod("q", "n", []string{"v"})
			if way() {
				t.Error("it makes way though a pod uses it")
			}
		})
	}
}

// TestTheQueuesFollowWhatChanges compares the queues that are kept with those that are made anew.
func TestTheQueuesFollowWhatChanges(t *testing.T) {
	longest := 0
	for seed := range uint64(200) {
		d := dice{rand.New(rand.NewPCG(seed, 3))}
		b := New()
		nodes, volumes := names("n", 3), names("v", 4)
		some := func(of []string) string { return of[d.IntN(len(of))] }
		for step := range 200 {
			v := some(volumes)
			switch d.IntN(10) {
			case 0, 1:
				b.disk(v, nodes[:d.from(0, 2)])
			case 2:
				b.DropVolume(v)
			case 3, 4:
				b.pod(some(names("p", 5)), some(nodes), []string{v, some(volumes)})
			case 5:
				b.DropPod(types.UID(some(names("p", 5))))
			case 6:
				b.SetClaim("shop/"+v, Claim{UID: types.UID(some(volumes)), Volume: "pv-" + v})
			case 7:
				b.DropBound("pv-" + v)
			case 8:
				b.DropClaim("shop/" + v)
			case 9:
				b.SetBound("pv-"+v, Bound{Handle: v, Claim: "shop/" + v, ClaimUID: types.UID(v)})
			}
			for _, node := range nodes {
				kept, anew := b.waiting(node), b.queue(node)
				if !slices.Equal(kept, anew) {
					t.Fatalf("world %d, step %d: %v wait on %s, and %v do", seed, step, kept, node, anew)
				}
				longest = max(longest, len(anew))
			}
		}
	}
	if longest < 3 {
		t.Errorf("at most %d wait", longest)
	}
}

func TestANodeIsLeavingIfItsPodsCannotComeBackToIt(t *testing.T) {
	pool := corev1.Taint{Key: "pool", Value: "db", Effect: corev1.TaintEffectNoSchedule}
	tolerates := &Pod{Tolerations: []corev1.Toleration{{Key: "pool", Operator: corev1.TolerationOpExists}}}
	for name, test := range map[string]struct {
		node Node
		pods []*Pod
		want bool
	}{
		"it is in service":                       {Node{Exists: true}, []*Pod{{}}, false},
		"it is cordoned":                         {Node{Exists: true, Cordoned: true}, nil, true},
		"it has a taint":                         {Node{Exists: true, Taints: []corev1.Taint{pool}}, []*Pod{tolerates, {}}, true},
		"all pods tolerate it":                   {Node{Exists: true, Taints: []corev1.Taint{pool}}, []*Pod{tolerates}, false},
		"no pod says what it tolerates":          {Node{Exists: true, Taints: []corev1.Taint{pool}}, nil, false},
		"the autoscaler is about to delete it":   {Node{Exists: true, Taints: []corev1.Taint{{Key: "ToBeDeletedByClusterAutoscaler", Effect: corev1.TaintEffectNoSchedule}}}, []*Pod{tolerates}, true},
		"the taint only expresses a wish":        {Node{Exists: true, Taints: []corev1.Taint{{Key: "pool", Effect: corev1.TaintEffectPreferNoSchedule}}}, []*Pod{{}}, false},
		"it is away for a while":                 {Node{Exists: true, Taints: []corev1.Taint{{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute}}}, []*Pod{{}}, false},
		"its cloud has switched it off":          {Node{Exists: true, Taints: []corev1.Taint{{Key: "node.cloudprovider.kubernetes.io/shutdown", Effect: corev1.TaintEffectNoSchedule}}}, []*Pod{{}}, false},
		"its Node is gone, which says no intent": {Node{Cordoned: true}, []*Pod{{}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Leaving(&test.node, test.pods); got != test.want {
				t.Errorf("leaving: %v", got)
			}
		})
	}
}
