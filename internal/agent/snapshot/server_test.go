package snapshot

import (
	"context"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"berth.dev/berth/api/v1alpha1"
)

var snapshots = v1alpha1.Resource("snapshots")

// server is an API server with one snapshot at most. Its watch shows the state of the last
// sync. The tests of package agent use a real API server; this one can fail at any request.
type server struct {
	live, watched *v1alpha1.Snapshot
	volume        *v1alpha1.Volume // nil: there is none
	class         *v1alpha1.PoolClass
	version       int
	reports       int
	// fail, if set, is called before and after each request.
	fail func(effect string) error
}

var _ Objects = (*server)(nil)

func newServer(s *v1alpha1.Snapshot) *server {
	v := &v1alpha1.Volume{Spec: v1alpha1.VolumeSpec{Replicas: []v1alpha1.ReplicaSpec{{Node: here, Pool: "vg0"}}}}
	class := &v1alpha1.PoolClass{Spec: v1alpha1.PoolClassSpec{Provisioner: v1alpha1.ProvisionerLVM, LVM: &v1alpha1.LVMPools{VolumeGroups: []string{"vg0"}}}}
	out := &server{volume: v, class: class}
	if s != nil {
		out.put(s)
		out.sync()
	}
	return out
}

// put stores a new version; the watch does not show it yet.
func (s *server) put(o *v1alpha1.Snapshot) {
	s.version++
	s.live = o.DeepCopy()
	s.live.ResourceVersion = strconv.Itoa(s.version)
}

func (s *server) edit(change option) {
	o := s.live.DeepCopy()
	change(o)
	s.put(o)
}

// sync lets the watch catch up.
func (s *server) sync() {
	s.watched = nil
	if s.live != nil && s.live.Labels != nil {
		s.watched = s.live.DeepCopy()
	}
}

func (s *server) asked(effect string) error {
	if s.fail == nil {
		return nil
	}
	return s.fail(effect)
}

func (s *server) Watched(_ context.Context, name string) (*v1alpha1.Snapshot, error) {
	if s.watched == nil {
		return nil, apierrors.NewNotFound(snapshots, name)
	}
	return s.watched.DeepCopy(), nil
}

func (s *server) Live(_ context.Context, name string) (*v1alpha1.Snapshot, error) {
	if err := s.asked("before live read"); err != nil {
		return nil, err
	}
	if s.live == nil {
		return nil, apierrors.NewNotFound(snapshots, name)
	}
	return s.live.DeepCopy(), nil
}

func (s *server) Volume(_ context.Context, name string) (*v1alpha1.Volume, error) {
	if s.volume == nil {
		return nil, apierrors.NewNotFound(v1alpha1.Resource("volumes"), name)
	}
	return s.volume, nil
}

func (s *server) Class(_ context.Context, name string) (*v1alpha1.PoolClass, error) {
	if s.class == nil {
		return nil, apierrors.NewNotFound(v1alpha1.Resource("poolclasses"), name)
	}
	return s.class, nil
}

func (s *server) Report(_ context.Context, o *v1alpha1.Snapshot, entry *v1alpha1.SnapshotReplica) error {
	if err := s.asked("before report"); err != nil {
		return err
	}
	switch {
	case s.live == nil:
		return apierrors.NewNotFound(snapshots, o.Name)
	case s.live.ResourceVersion != o.ResourceVersion:
		return apierrors.NewConflict(snapshots, o.Name, nil)
	}
	s.reports++
	s.edit(func(live *v1alpha1.Snapshot) { live.Status.Replicas = []v1alpha1.SnapshotReplica{*entry.DeepCopy()} })
	return s.asked("after report")
}
