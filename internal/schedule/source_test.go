package schedule

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/ledger"
)

func TestWhereASnapshotCanBeRestored(t *testing.T) {
	ready := VolumeSnapshot{Ready: true, Driver: v1alpha1.LocalDriverName, Handle: "snap-x"}
	with := func(change func(*VolumeSnapshot)) *VolumeSnapshot {
		s := ready
		change(&s)
		return &s
	}
	failed := func(taken bool) *v1alpha1.Snapshot {
		s := snapshotOn("n1", v1alpha1.SnapshotFailed)
		s.Status.Replicas[0].Message = "the disk is gone"
		if taken {
			s.Status.Replicas[0].Taken = now()
		}
		return s
	}
	going := snapshotOn("n1", v1alpha1.SnapshotReady)
	going.DeletionTimestamp = now()
	kept := snapshotOn("n1", v1alpha1.SnapshotReady)
	kept.Spec.Replicas = append(kept.Spec.Replicas, v1alpha1.ReplicaSpec{Node: "n2", Pool: "vg1"}, v1alpha1.ReplicaSpec{Node: "n3", Pool: "vg0"})
	kept.Status.Replicas = append(kept.Status.Replicas, v1alpha1.SnapshotReplica{Node: "n2", State: v1alpha1.SnapshotReady}, v1alpha1.SnapshotReplica{Node: "n4", State: v1alpha1.SnapshotReady})
	n1 := []ledger.Place{{Node: "n1", Pool: "vg0"}}
	tests := map[string]struct {
		of       *VolumeSnapshot
		snapshot *v1alpha1.Snapshot
		problem  string
		places   []ledger.Place
		ignored  bool
	}{
		"the snapshot is ready on a node":                       {&ready, snapshotOn("n1", v1alpha1.SnapshotReady), "", n1, false},
		"the snapshot is ready on some of the nodes":            {&ready, kept, "", append(n1, ledger.Place{Node: "n2", Pool: "vg1"}), false},
		"the VolumeSnapshot does not exist":                     {nil, nil, "which does not exist", nil, false},
		"the VolumeSnapshot belongs to another driver":          {with(func(s *VolumeSnapshot) { s.Driver = "x" }), nil, "", nil, true},
		"the VolumeSnapshot of another driver is being deleted": {with(func(s *VolumeSnapshot) { s.Driver, s.Deleting = "x", true }), nil, "", nil, true},
		"the VolumeSnapshot is being deleted":                   {with(func(s *VolumeSnapshot) { s.Deleting = true }), snapshotOn("n1", v1alpha1.SnapshotReady), "which is being deleted", nil, false},
		"the VolumeSnapshot has no content yet":                 {&VolumeSnapshot{}, nil, "which is not taken yet", nil, false},
		"the VolumeSnapshot has no content and says why":        {&VolumeSnapshot{Problem: "no class"}, nil, "which is not taken yet: no class", nil, false},
		"the VolumeSnapshot is not ready":                       {with(func(s *VolumeSnapshot) { s.Ready = false }), snapshotOn("n1", v1alpha1.SnapshotReady), "which is not ready to use", nil, false},
		"the VolumeSnapshot is not ready and says why":          {with(func(s *VolumeSnapshot) { s.Ready, s.Problem = false, "no room" }), nil, "which is not ready to use: no room", nil, false},
		"the VolumeSnapshot is ready and has no id":             {with(func(s *VolumeSnapshot) { s.Handle = "" }), nil, "which is not ready to use", nil, false},
		"Berth does not know the snapshot":                      {&ready, nil, "which is lost: Berth has no snapshot snap-x", nil, false},
		"Berth is deleting the snapshot":                        {&ready, going, "which is being deleted", nil, false},
		"the node is copying the snapshot":                      {&ready, snapshotOn("n1", v1alpha1.SnapshotCopying), "which is not ready to use", nil, false},
		"the node could not take the snapshot":                  {&ready, failed(false), "which is not ready to use", nil, false},
		"the node took the snapshot and has lost the snapshot":  {&ready, failed(true), "which is lost on node n1: the disk is gone", nil, false},
		"the node has not reported":                             {&ready, &v1alpha1.Snapshot{Spec: v1alpha1.SnapshotSpec{Replicas: kept.Spec.Replicas}}, "which is not ready to use", nil, false},
		"only an unwanted node has the snapshot":                {&ready, &v1alpha1.Snapshot{Status: v1alpha1.SnapshotStatus{Replicas: kept.Status.Replicas}}, "which is not ready to use", nil, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var s Source
			problem := s.restored(driver.Local(), test.of, test.snapshot)
			if problem != test.problem || s.ignored != test.ignored {
				t.Errorf("problem %q, ignored %t; want %q, %t", problem, s.ignored, test.problem, test.ignored)
			}
			if diff := cmp.Diff(test.places, s.Places); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhereAVolumeCanBeCloned(t *testing.T) {
	changed := func(change func(*v1alpha1.Volume)) *v1alpha1.Volume {
		v := volumeFor("8", "n1", gi)
		change(v)
		return v
	}
	tests := map[string]struct {
		volume  *v1alpha1.Volume
		problem string
		nodes   []string
	}{
		"the volume is ready on the node": {volumeFor("8", "n1", gi), "", []string{"n1"}},
		"the volume does not exist":       {nil, "whose volume does not exist", nil},
		"the volume is being deleted":     {changed(func(v *v1alpha1.Volume) { v.DeletionTimestamp = now() }), "whose volume is being deleted", nil},
		"no node has answered":            {changed(func(v *v1alpha1.Volume) { v.Status.Replicas = nil }), "which is not ready on any node", nil},
		"the node has lost the volume": {changed(func(v *v1alpha1.Volume) {
			v.Status.Replicas[0].Ready, v.Status.Replicas[0].Message = false, "no device"
		}), "which is not ready on node n1: no device", nil},
		"one of two nodes is ready": {changed(func(v *v1alpha1.Volume) {
			v.Spec.Replicas = append(v.Spec.Replicas, v1alpha1.ReplicaSpec{Node: "n2", Pool: "vg0"})
			v.Status.Replicas = append(v.Status.Replicas, v1alpha1.ReplicaStatus{Node: "n2"})
		}), "", []string{"n1"}},
		"the volume leaves the node": {changed(func(v *v1alpha1.Volume) { v.Spec.Replicas = nil }), "which is not ready on any node", nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var s Source
			if problem := s.cloned(test.volume); problem != test.problem {
				t.Errorf("problem %q, want %q", problem, test.problem)
			}
			if diff := cmp.Diff(test.nodes, s.Nodes()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestASourceIsToldAsItsOwnerKnowsIt(t *testing.T) {
	at := func(nodes ...string) (places []ledger.Place) {
		for _, node := range nodes {
			places = append(places, ledger.Place{Node: node, Pool: "vg0"}, ledger.Place{Node: node, Pool: "vg1"})
		}
		return places
	}
	for want, s := range map[string]Source{
		`claim "new" is made from claim "old", which is on node n1`:             {Claim: "new", Kind: kindClaim, Name: "old", Places: at("n1")},
		`claim "new" is made from snapshot "nightly", which is on node n1`:      {Claim: "new", Kind: kindSnapshot, Name: "nightly", Places: at("n1")},
		`claim "new" is made from snapshot "nightly", which is on nodes n1, n2`: {Claim: "new", Kind: kindSnapshot, Name: "nightly", Places: at("n2", "n1")},
	} {
		if got := s.Where(); got != want {
			t.Errorf("told %q, want %q", got, want)
		}
	}
}
