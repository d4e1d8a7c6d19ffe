package upkeep

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/usecase"
	"berth.dev/berth/internal/usecase/volumetest"
)

var everyone = volumetest.Nodes{"n": "", "m": "", "far": "is silent"}

// volume is on node n, complete, as its options change it.
func volume(options ...func(*v1alpha1.Volume)) *v1alpha1.Volume {
	v := &v1alpha1.Volume{}
	v.Finalizers = []string{v1alpha1.VolumeFinalizer}
	v.Labels = map[string]string{v1alpha1.ReplicaLabel("n"): ""}
	v.Spec.Replicas = []v1alpha1.ReplicaSpec{{Node: "n", Pool: "vg"}}
	for _, option := range options {
		option(v)
	}
	return v
}

func entry(node string, state v1alpha1.ReplicaState, reason string) func(*v1alpha1.Volume) {
	return func(v *v1alpha1.Volume) {
		v.Status.Replicas = append(v.Status.Replicas, v1alpha1.ReplicaStatus{
			Node: node, State: state, Reason: reason, Message: "because", Capacity: resource.NewQuantity(1, resource.BinarySI),
		})
	}
}

func label(node string) func(*v1alpha1.Volume) {
	return func(v *v1alpha1.Volume) { v.Labels[v1alpha1.ReplicaLabel(node)] = "" }
}

func deleting(v *v1alpha1.Volume) { v.DeletionTimestamp = &metav1.Time{} }

func TestTheFinalizerGoesWhenNoNodeMayHoldData(t *testing.T) {
	tests := map[string]struct {
		volume *v1alpha1.Volume
		held   bool
	}{
		"a volume that lives":                                {volume(entry("n", v1alpha1.ReplicaGone, "Removed")), true},
		"deleted, and the node has not answered":             {volume(deleting), true},
		"deleted, and the node has the data":                 {volume(deleting, entry("n", v1alpha1.ReplicaReady, "Carved")), true},
		"deleted, and the node cannot remove the data":       {volume(deleting, entry("n", v1alpha1.ReplicaFailed, "InUse")), true},
		"deleted, and the node has removed the data":         {volume(deleting, entry("n", v1alpha1.ReplicaGone, "Removed")), false},
		"deleted, and another node still has data":           {volume(deleting, entry("n", v1alpha1.ReplicaGone, "Removed"), entry("m", v1alpha1.ReplicaReady, "Carved")), true},
		"deleted, and an earlier node is away":               {volume(deleting, entry("n", v1alpha1.ReplicaGone, "Removed"), label("far")), true},
		"deleted, and an earlier node is unknown":            {volume(deleting, entry("n", v1alpha1.ReplicaGone, "Removed"), label("lost")), true},
		"deleted, and an earlier node is there without data": {volume(deleting, entry("n", v1alpha1.ReplicaGone, "Removed"), label("m")), false},
		"deleted, and the labels were lost": {
			volume(deleting, entry("n", v1alpha1.ReplicaReady, "Carved"), func(v *v1alpha1.Volume) { v.Labels = nil }), true,
		},
		"deleted, and on no node": {
			volume(deleting, func(v *v1alpha1.Volume) { v.Spec.Replicas, v.Labels = nil, nil }), false,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			tidyVolume(test.volume)
			if held := slices.Contains(test.volume.Finalizers, v1alpha1.VolumeFinalizer); held != test.held {
				t.Errorf("finalizer held: %v, want %v", held, test.held)
			}
		})
	}
}

func TestAVolumeThatIsWellIsNotWritten(t *testing.T) {
	for name, v := range map[string]*v1alpha1.Volume{
		"just created":         volume(),
		"carved":               volume(entry("n", v1alpha1.ReplicaReady, "Carved")),
		"refused an expansion": volume(entry("n", v1alpha1.ReplicaReady, "NoSpace")),
		"refused for room":     volume(entry("n", v1alpha1.ReplicaFailed, "NoSpace")),
		"gone from the node":   volume(entry("n", v1alpha1.ReplicaGone, "Removed")),
		"deleted, and another finalizer holds the object": volume(deleting, entry("n", v1alpha1.ReplicaGone, "Removed"), func(v *v1alpha1.Volume) { v.Finalizers = []string{"theirs"} }),
		"deleted, and the node has not answered":          volume(deleting, entry("n", v1alpha1.ReplicaReady, "Carved")),
	} {
		t.Run(name, func(t *testing.T) {
			if tidyVolume(v) || (&Volumes{Nodes: everyone}).tidyStatus(v) {
				t.Errorf("changed to %+v", v)
			}
		})
	}
}

func TestALabelGoesBeforeItsEntry(t *testing.T) {
	v := volume(label("m"), entry("n", v1alpha1.ReplicaReady, "Carved"), entry("m", v1alpha1.ReplicaGone, "Removed"))
	if !tidyVolume(v) || len(v.Labels) != 1 || len(v.Status.Replicas) != 2 {
		t.Fatalf("first: labels %v, entries %v", v.Labels, v.Status.Replicas)
	}
	if !(&Volumes{Nodes: everyone}).tidyStatus(v) || len(v.Status.Replicas) != 1 || v.Status.Replicas[0].Node != "n" {
		t.Fatalf("second: entries %v", v.Status.Replicas)
	}
}

func TestOnlyTheEntryOfANodeThatHasNothingAndShouldNotIsDropped(t *testing.T) {
	ready := entry("n", v1alpha1.ReplicaReady, "Carved")
	for name, test := range map[string]struct {
		volume *v1alpha1.Volume
		kept   []string
	}{
		"the node lost the data":                                      {volume(entry("n", v1alpha1.ReplicaGone, "Removed")), []string{"n"}},
		"the volume left a node, and the node has no data":            {volume(ready, entry("m", v1alpha1.ReplicaGone, "Removed")), []string{"n"}},
		"the volume left a node, and the node still has data":         {volume(ready, entry("m", v1alpha1.ReplicaReady, "Carved")), []string{"n", "m"}},
		"the volume left a node, and the node cannot remove the data": {volume(ready, entry("m", v1alpha1.ReplicaFailed, "InUse")), []string{"n", "m"}},
		// The label stays, and a node without an entry is waited for when it is away.
		"deleted, and a node that the volume left has no data": {volume(deleting, ready, label("m"), entry("m", v1alpha1.ReplicaGone, "Removed")), []string{"n", "m"}},
	} {
		t.Run(name, func(t *testing.T) {
			(&Volumes{Nodes: everyone}).tidyStatus(test.volume)
			var kept []string
			for _, entry := range test.volume.Status.Replicas {
				kept = append(kept, entry.Node)
			}
			if !slices.Equal(kept, test.kept) {
				t.Errorf("the entries of %v are kept, want %v", kept, test.kept)
			}
		})
	}
}

func TestTheConditionSaysWhatIsWrongAndWhenItIsOver(t *testing.T) {
	r := &Volumes{Nodes: everyone}
	v := volume(entry("n", v1alpha1.ReplicaFailed, v1alpha1.ReasonDeviceMissing))
	r.tidyStatus(v)
	c := meta.FindStatusCondition(v.Status.Conditions, v1alpha1.ConditionReady)
	if c == nil || c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonDeviceMissing || c.Message != "because" {
		t.Fatalf("condition is %+v", c)
	}
	v.Status.Replicas = nil
	entry("n", v1alpha1.ReplicaReady, v1alpha1.ReasonCarved)(v)
	r.tidyStatus(v)
	if c := meta.FindStatusCondition(v.Status.Conditions, v1alpha1.ConditionReady); c == nil || c.Status != metav1.ConditionTrue {
		t.Fatalf("afterwards it is %+v", c)
	}
	if r.tidyStatus(v) {
		t.Error("written again although nothing changed")
	}
}

func TestADeletionThatWaitsSaysForWhom(t *testing.T) {
	tests := map[string]struct {
		volume *v1alpha1.Volume
		reason string
	}{
		"the node is away":                                {volume(deleting, entry("far", v1alpha1.ReplicaReady, "Carved")), v1alpha1.ReasonNodeAway},
		"the node is unknown":                             {volume(deleting, label("lost")), v1alpha1.ReasonNodeAway},
		"the device is open":                              {volume(deleting, entry("n", v1alpha1.ReplicaFailed, v1alpha1.ReasonInUse)), v1alpha1.ReasonInUse},
		"the node is about to remove the data":            {volume(deleting, entry("n", v1alpha1.ReplicaReady, "Carved")), ""},
		"the volume is not deleted, and the node is away": {volume(entry("far", v1alpha1.ReplicaReady, "Carved")), ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := problemOf(test.volume, everyone); got.reason != test.reason || (got.message == "") != (test.reason == "") {
				t.Errorf("got %+v, want %s", got, test.reason)
			}
		})
	}
}

func tidyVolume(v *v1alpha1.Volume) bool {
	return tidyMetadata(v, v1alpha1.VolumeFinalizer, usecase.PlacedVolume(v), everyone, nil)
}
