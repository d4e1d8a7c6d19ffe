package snapshots

import (
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/usecase"
)

// away maps nodes to why they are away.
type away map[string]string

func (a away) Away(node string) string { return a[node] }
func (away) Labelled(string) string    { return "" }

// wanted is a snapshot for node n, with the reports of the node.
func wanted(entries ...v1alpha1.SnapshotReplica) *v1alpha1.Snapshot {
	s := &v1alpha1.Snapshot{Spec: v1alpha1.SnapshotSpec{Replicas: []v1alpha1.ReplicaSpec{{Node: "n", Pool: "vg0"}}}}
	s.Status.Replicas = entries
	return s
}

func says(state v1alpha1.SnapshotState, reason string, taken bool) v1alpha1.SnapshotReplica {
	entry := v1alpha1.SnapshotReplica{Node: "n", State: state, Reason: reason, Message: "node n: because"}
	if taken {
		entry.Taken = &metav1.Time{Time: time.Unix(1e9, 0)}
		entry.RestoreSize = resource.NewQuantity(7, resource.BinarySI)
	}
	return entry
}

func TestAnswersToASnapshot(t *testing.T) {
	const broken = v1alpha1.SnapshotFailed
	tests := map[string]struct {
		snapshot *v1alpha1.Snapshot
		nodes    away
		state    usecase.State
		class    error
	}{
		"no entry yet":                      {wanted(), nil, usecase.Waiting, nil},
		"no entry, and the node is away":    {wanted(), away{"n": "is silent"}, usecase.Failed, provision.ErrUnavailable},
		"gone, from an earlier wish":        {wanted(says(v1alpha1.SnapshotGone, "", false)), nil, usecase.Waiting, nil},
		"taken and being copied":            {wanted(says(v1alpha1.SnapshotCopying, "", true)), nil, usecase.Done, nil},
		"ready":                             {wanted(says(v1alpha1.SnapshotReady, "", true)), nil, usecase.Done, nil},
		"ready on a node that is away":      {wanted(says(v1alpha1.SnapshotReady, "", true)), away{"n": "is silent"}, usecase.Done, nil},
		"no room":                           {wanted(says(broken, v1alpha1.ReasonNoSpace, false)), nil, usecase.Refused, provision.ErrNoSpace},
		"no room, on a node that is away":   {wanted(says(broken, v1alpha1.ReasonNoSpace, false)), away{"n": "is silent"}, usecase.Refused, provision.ErrNoSpace},
		"a provisioner without snapshots":   {wanted(says(broken, v1alpha1.ReasonUnsupported, false)), nil, usecase.Refused, provision.ErrUnsupported},
		"an impossible wish":                {wanted(says(broken, v1alpha1.ReasonInvalid, false)), nil, usecase.Refused, provision.ErrInvalid},
		"other data of the same name":       {wanted(says(broken, v1alpha1.ReasonConflict, false)), nil, usecase.Refused, provision.ErrConflict},
		"a missing pool that may come back": {wanted(says(broken, v1alpha1.ReasonPoolMissing, false)), nil, usecase.Failed, provision.ErrUnavailable},
		"a provisioner that fails":          {wanted(says(broken, v1alpha1.ReasonProvisionerError, false)), nil, usecase.Failed, provision.ErrUnavailable},
		"an unknown reason":                 {wanted(says(broken, "Novelty", false)), nil, usecase.Failed, provision.ErrUnavailable},
		"taken, and then no room for more":  {wanted(says(broken, v1alpha1.ReasonNoSpace, true)), nil, usecase.Failed, provision.ErrUnavailable},
		"taken, and then lost":              {wanted(says(broken, v1alpha1.ReasonDeviceMissing, true)), nil, usecase.Failed, provision.ErrUnavailable},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := (&Service{nodes: test.nodes}).judge(test.snapshot)
			if got.State != test.state || !errors.Is(got.Err(), test.class) {
				t.Errorf("got %v, %v, want %v, %v", got.State, got.Err(), test.state, test.class)
			}
		})
	}
}

func TestWhereASnapshotIsTaken(t *testing.T) {
	on := func(pool string, ready bool) *v1alpha1.Volume {
		v := &v1alpha1.Volume{}
		v.Name, v.Spec.PoolClass = "v", "fast"
		v.Spec.Replicas = []v1alpha1.ReplicaSpec{{Node: "n", Pool: pool}}
		v.Status.Replicas = []v1alpha1.ReplicaStatus{{Node: "n", Ready: ready}}
		return v
	}
	silent := on("vg0/thin", true)
	silent.Status.Replicas = nil
	tests := map[string]struct {
		volume *v1alpha1.Volume
		nodes  away
		class  error
		told   string
	}{
		"the node has the volume":    {on("vg0/thin", true), nil, nil, ""},
		"the volume is a zvol":       {on("zfs:tank", true), nil, nil, ""},
		"the volume is not ready":    {on("vg0/thin", false), nil, provision.ErrUnavailable, "not ready"},
		"the node has not answered":  {silent, nil, provision.ErrUnavailable, "not ready"},
		"the node is away":           {on("vg0/thin", true), away{"n": "is silent"}, provision.ErrUnavailable, "node n, which has volume v: is silent"},
		"the volume is thick":        {on("vg0", true), nil, nil, ""},
		"the volume is a whole disk": {on("disk:wwn-1", true), nil, provision.ErrUnsupported, `PoolClass "fast", whose provisioner Device has no snapshots`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			at, err := (&Service{nodes: test.nodes}).place(test.volume)
			if !errors.Is(err, test.class) || err == nil && at.Node != "n" || err != nil && !strings.Contains(err.Error(), test.told) {
				t.Errorf("got %v, %v", at, err)
			}
		})
	}
}

func TestASnapshotExistsOnceItIsTaken(t *testing.T) {
	sizeless := says(v1alpha1.SnapshotFailed, v1alpha1.ReasonDeviceMissing, true)
	sizeless.RestoreSize = nil
	tests := map[string]struct {
		snapshot *v1alpha1.Snapshot
		want     bool
		ready    bool
	}{
		"wanted":                {wanted(), false, false},
		"refused":               {wanted(says(v1alpha1.SnapshotFailed, v1alpha1.ReasonNoSpace, false)), false, false},
		"being copied":          {wanted(says(v1alpha1.SnapshotCopying, "", true)), true, false},
		"ready":                 {wanted(says(v1alpha1.SnapshotReady, "", true)), true, true},
		"taken and broken":      {wanted(says(v1alpha1.SnapshotFailed, v1alpha1.ReasonDeviceMissing, true)), true, false},
		"taken, without a size": {wanted(sizeless), true, false},
		"ready on one node and being copied on the next node": {
			wanted(says(v1alpha1.SnapshotReady, "", true), says(v1alpha1.SnapshotCopying, "", true)), true, true,
		},
		"gone": {wanted(says(v1alpha1.SnapshotGone, "", true)), false, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := exists(test.snapshot); got != test.want || view(test.snapshot).Ready != test.ready {
				t.Errorf("exists %t, %+v", got, view(test.snapshot))
			}
		})
	}
}
