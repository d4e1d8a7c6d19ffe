package replica

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/driver"
)

var volumes = v1alpha1.Resource("volumes")

// server is an API server that holds Volumes and versions. Its watch shows the state of the
// last sync. The tests of package agent use a real API server; this one can fail at any
// request.
type server struct {
	mu      sync.Mutex
	live    map[string]*v1alpha1.Volume
	watched map[string]*v1alpha1.Volume
	classes map[string]*v1alpha1.PoolClass
	// snapshots that exist; of others nothing is known.
	snapshots map[string]*v1alpha1.Snapshot
	version   int
	reports   int
	// fail, if set, is called before and after each request.
	fail func(effect string) error
}

var _ Objects = (*server)(nil)

func newServer(vs ...*v1alpha1.Volume) *server {
	s := &server{live: map[string]*v1alpha1.Volume{}, watched: map[string]*v1alpha1.Volume{}, classes: map[string]*v1alpha1.PoolClass{}}
	fast := &v1alpha1.PoolClass{Spec: v1alpha1.PoolClassSpec{Provisioner: v1alpha1.ProvisionerLVM, LVM: &v1alpha1.LVMPools{VolumeGroups: []string{"vg0"}}}}
	fast.Name = "fast"
	s.classes["fast"] = fast
	for _, v := range vs {
		s.put(v)
	}
	s.sync()
	return s
}

// put stores a volume as a new version; the watch does not show it yet.
func (s *server) put(v *v1alpha1.Volume) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	v = v.DeepCopy()
	v.ResourceVersion = strconv.Itoa(s.version)
	s.live[v.Name] = v
}

// edit changes the live volume.
func (s *server) edit(change option) {
	v := s.get()
	change(v)
	s.put(v)
}

// get returns the live volume of the tests, or nil.
func (s *server) get() *v1alpha1.Volume {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live[id].DeepCopy()
}

// drop removes the live volume.
func (s *server) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.live, id)
}

// sync lets the watch catch up: it shows the volumes with this node's label.
func (s *server) sync() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.watched)
	for name, v := range s.live {
		if _, labelled := v.Labels[v1alpha1.ReplicaLabel(here)]; labelled {
			s.watched[name] = v.DeepCopy()
		}
	}
}

func (s *server) asked(effect string) error {
	if s.fail == nil {
		return nil
	}
	return s.fail(effect)
}

func (s *server) Watched(_ context.Context, name string) (*v1alpha1.Volume, error) {
	return s.read(s.watched, name)
}

func (s *server) Live(_ context.Context, name string) (*v1alpha1.Volume, error) {
	if err := s.asked("before live read"); err != nil {
		return nil, err
	}
	v, err := s.read(s.live, name)
	if err == nil && !driver.Local().Owns(v) {
		return nil, fmt.Errorf("%w: %s", driver.ErrForeign, name)
	}
	return v, err
}

func (s *server) Snapshot(_ context.Context, name string) (*v1alpha1.Snapshot, error) {
	if err := s.asked("before snapshot read"); err != nil {
		return nil, err
	}
	switch o := s.snapshots[name]; {
	case o == nil:
		return nil, apierrors.NewNotFound(v1alpha1.Resource("snapshots"), name)
	case !driver.Local().Owns(o):
		return nil, fmt.Errorf("%w: %s", driver.ErrForeign, name)
	default:
		return o, nil
	}
}

func (s *server) read(from map[string]*v1alpha1.Volume, name string) (*v1alpha1.Volume, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v, ok := from[name]; ok {
		return v.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(volumes, name)
}

func (s *server) Class(_ context.Context, name string) (*v1alpha1.PoolClass, error) {
	if c, ok := s.classes[name]; ok {
		return c, nil
	}
	return nil, apierrors.NewNotFound(v1alpha1.Resource("poolclasses"), name)
}

func (s *server) Report(_ context.Context, v *v1alpha1.Volume, entry *v1alpha1.ReplicaStatus) error {
	if err := s.asked("before report"); err != nil {
		return err
	}
	if err := s.apply(v, entry); err != nil {
		return err
	}
	return s.asked("after report")
}

func (s *server) apply(v *v1alpha1.Volume, entry *v1alpha1.ReplicaStatus) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	live, ok := s.live[v.Name]
	if !ok {
		return apierrors.NewNotFound(volumes, v.Name)
	}
	if live.ResourceVersion != v.ResourceVersion {
		return apierrors.NewConflict(volumes, v.Name, nil)
	}
	next := live.DeepCopy()
	if e := next.Entry(entry.Node); e != nil {
		*e = *entry.DeepCopy()
	} else {
		next.Status.Replicas = append(next.Status.Replicas, *entry.DeepCopy())
	}
	s.version++
	s.reports++
	next.ResourceVersion = strconv.Itoa(s.version)
	s.live[v.Name] = next
	return nil
}
