package oversight

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/record"
)

var e3 = lineage.Epoch{Number: 3, ID: "three"}

// together is a disk that n1 writes in epoch 2, and n2 in epoch 3.
func together(edits ...func(*ownership.Volume)) *ownership.Volume {
	return shared(append([]func(*ownership.Volume){func(v *ownership.Volume) {
		v.Factor, v.Sharing = 1, ownership.Sharing{MaxShares: 3, Persistent: true, ManyWriters: true}
		v.Writers = []ownership.Writer{{Primary: v.Primary, Epoch: e2}}
		v.Epoch, v.Primary.Node = e3, "n2"
		v.Lineage = append(v.Lineage, lineage.Branch{Epoch: e3})
	}}, edits...)...)
}

func writerIs(p ownership.Phase) func(*ownership.Volume) {
	return func(v *ownership.Volume) { v.Writers[0].Primary.Phase = p }
}

func inBoot(boot string) func(*ownership.Volume) {
	return func(v *ownership.Volume) { v.Writers[0].Primary.Boot = boot }
}

func TestOfSeveralWritersOneThatLostItsPowerIsShutOutAndTheOtherKeepsItsPod(t *testing.T) {
	inWorld(t, cluster(t, together(), pod("lost", "n1"), pod("other", "n2")), func(w *world) {
		r := w.controller()
		w.passes(ownership.WatchFirst)
		w.oversees(r)
		w.dead["n1"] = true
		w.passes(time.Minute)
		w.oversees(r)
		v := recordOf(w)
		if asked := v.On("n1").FenceRequest; asked.Executor != "n2" || asked.Epoch != e2 || v.On("n2").FenceRequest != (ownership.FenceRequest{}) {
			t.Fatalf("asked to shut a writer out: %+v", v.AllWriters())
		}
		w.becomes(func(v *ownership.Volume) { v.Replicas[1].Fenced = e2 })
		w.oversees(r)
		if v := recordOf(w); v.On("n1").Primary.Phase != ownership.Fenced || v.On("n2").Primary.Phase != ownership.Active {
			t.Errorf("the writers are %+v", v.AllWriters())
		}
		if diff := cmp.Diff([]string{"other"}, w.pods()); diff != "" {
			t.Error(diff)
		}
	})
}

func recordOf(w *world) *ownership.Volume {
	w.t.Helper()
	v, err := record.From(w.volume())
	if err != nil {
		w.t.Fatal(err)
	}
	return v
}

func TestWhichPodsOfSeveralWritersAreLeftBehindOrStranded(t *testing.T) {
	here := func(string) bool { return false }
	answered := func(string) bool { return true }
	says := func(node string, opened, closed lineage.Epoch) []ownership.Peer {
		return []ownership.Peer{{Node: node, Copy: ownership.Copy{Promise: ownership.Promise{Epoch: opened, Boot: boot}, Opened: opened, Closed: closed}}}
	}
	over, later := says("n1", e2, e2), lineage.Epoch{Number: 4, ID: "four"}
	for name, test := range map[string]struct {
		record         *ownership.Volume
		peers          []ownership.Peer
		behind, strand bool
	}{
		"both write":                                                    {record: together()},
		"the other one is fenced":                                       {record: together(phase(ownership.Fenced))},
		"its writer is fenced":                                          {record: together(writerIs(ownership.Fenced)), behind: true},
		"its writer has released":                                       {record: together(writerIs(ownership.Released)), strand: true},
		"its writer says that it has given the epoch up":                {record: together(), peers: over, strand: true},
		"the other one says that it has given its own up":               {record: together(), peers: says("n2", e3, e3)},
		"its writer says so of the epoch before":                        {record: together(), peers: says("n1", e2, e1)},
		"its writer prepares the next epoch":                            {record: together(writerIs(ownership.Preparing)), peers: says("n1", e1, e1)},
		"a backup calls an epoch prepared that its writer has given up": {record: together(writerIs(ownership.Preparing)), peers: over, strand: true},
		"a backup tells of an epoch in an earlier boot of its writer":   {record: together(writerIs(ownership.Released), inBoot("earlier")), peers: says("n1", later, later), strand: true},
		"a backup has forgotten the epoch that its writer has given up": {record: together(func(v *ownership.Volume) { v.Writers = nil }), peers: says("n1", e2, e2), strand: true},
		"a backup has forgotten the epoch in which its writer writes":   {record: together(func(v *ownership.Volume) { v.Writers = nil }), peers: says("n1", e2, e1)},
		"the one writer of a disk writes":                               {record: shared(), peers: says("n1", e2, e1)},
		"the one writer of a disk says that it has given its epoch up":  {record: shared(), peers: over, strand: true},
		"another node than the one writer says so":                      {record: shared(), peers: says("n2", e2, e2)},
		"the one writer says so of an epoch before":                     {record: shared(), peers: says("n1", e1, e1)},
		"the one writer says so and was fenced":                         {record: shared(phase(ownership.Fenced)), peers: over, behind: true},
	} {
		pods := []corev1.Pod{*pod("p", "n1")}
		end, _ := leftBehind(test.record, pods, here, answered)
		dead := stranded(test.record, pods, test.peers, func(string) string { return boot })
		if len(end) > 0 != test.behind || len(dead) > 0 != test.strand {
			t.Errorf("%s: left behind %v, stranded %v", name, len(end) > 0, len(dead) > 0)
		}
	}
}

func TestADiskThatSeveralNodesWriteCanBeUsedFromAnyNodeWithASlot(t *testing.T) {
	q := &question{facts: ownership.ControllerFacts{Record: together(), Nodes: []ownership.Machine{
		{Name: "n1"}, {Name: "n2"}, {Name: "n3", Fits: true, Slots: 1}, {Name: "n4", Fits: true},
	}}, pods: []corev1.Pod{*pod("waits", "", pending)}}
	if got := append(usable(q.facts.Record, nil), open(q)...); !slices.Equal(got, []string{"n1", "n2", "n3"}) || !nowhere(q) {
		t.Errorf("a pod can go to %v, and is looked at again: %v", got, nowhere(q))
	}
}
