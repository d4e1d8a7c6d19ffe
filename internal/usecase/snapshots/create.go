package snapshots

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/ledger"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/usecase"
)

// Request asks for a snapshot.
type Request struct {
	// Name is the CSI name; the snapshot's id is a function of it.
	Name string
	// Volume is the CSI id of the volume.
	Volume string
}

type watcher = usecase.Watcher[*v1alpha1.Snapshot]

// Create takes a snapshot and returns it once its node has taken it, ready or not. A
// repeated call returns it. A call for another volume under the same name is
// provision.ErrConflict. If the node refuses for good nothing remains.
func (s *Service) Create(ctx context.Context, r Request) (Snapshot, error) {
	name := v1alpha1.SnapshotName(r.Name)
	unlock, err := s.objects.Lock(name)
	if err != nil {
		return Snapshot{}, err
	}
	defer unlock()
	events := s.objects.Watchers.Watch(name)
	defer events.Stop()

	o, err := s.objects.Find(ctx, name)
	if err == nil && o == nil {
		o, err = s.begin(ctx, name, r.Volume)
	}
	switch {
	case err != nil:
		return Snapshot{}, err
	case o.DeletionTimestamp != nil:
		return Snapshot{}, usecase.Fail(usecase.ErrBusy, "snapshot %s is being deleted", name)
	case o.Spec.Volume != r.Volume:
		return Snapshot{}, usecase.Fail(provision.ErrConflict, "snapshot %s exists and is of volume %s, not %s", name, o.Spec.Volume, r.Volume)
	}
	return s.answered(ctx, events, o)
}

// begin creates the Snapshot object.
func (s *Service) begin(ctx context.Context, name, volume string) (*v1alpha1.Snapshot, error) {
	v, err := s.volume(ctx, volume)
	if err != nil {
		return nil, err
	}
	at, err := s.place(v)
	if err != nil {
		return nil, err
	}
	if err := s.unclaimed(name, at); err != nil {
		return nil, err
	}
	if err := usecase.MayCopy(ctx, s.live, at.Node, at.Pool); err != nil {
		return nil, err
	}
	o := &v1alpha1.Snapshot{Spec: v1alpha1.SnapshotSpec{
		Volume: v.Name, VolumeMode: v.Spec.VolumeMode, FSType: v.Spec.FSType, PoolClass: v.Spec.PoolClass, Replicas: []v1alpha1.ReplicaSpec{at},
	}}
	o.Name, o.Finalizers = name, []string{v1alpha1.SnapshotFinalizer}
	o.Labels = map[string]string{v1alpha1.ReplicaLabel(at.Node): ""}
	err = s.client.Create(ctx, o)
	if apierrors.IsAlreadyExists(err) {
		return s.reread(ctx, name)
	}
	if err != nil {
		return nil, fmt.Errorf("creating snapshot %s: %w", name, err)
	}
	return o, nil
}

// unclaimed refuses a name under which another place keeps a snapshot: that
// one was taken before, and the API server was restored from an older backup.
// A snapshot that is taken now would hold other data. In the place itself the
// node uses the snapshot that it has, if it is of the same volume.
func (s *Service) unclaimed(name string, at v1alpha1.ReplicaSpec) error {
	node, pool, found := s.orphans.Orphan(ledger.VolumeSnapshot(name))
	if !found || node == at.Node && pool == at.Pool {
		return nil
	}
	return usecase.Fail(provision.ErrConflict,
		"snapshot %s is not taken anew: node %s: it has one of that name in pool %s without a Snapshot: it is kept; `kubectl berth adopt %s %s` makes the Snapshot for it as it is",
		name, node, pool, node, name)
}

// reread gets the snapshot after another process has written it first.
func (s *Service) reread(ctx context.Context, name string) (*v1alpha1.Snapshot, error) {
	o, err := s.objects.Get(ctx, name)
	if err == nil && o == nil {
		return nil, deleted(name)
	}
	return o, err
}

func deleted(name string) error {
	return usecase.Fail(usecase.ErrBusy, "snapshot %s was deleted while it was being taken", name)
}

// volume reads the volume, which must exist and not be marked for deletion.
func (s *Service) volume(ctx context.Context, id string) (*v1alpha1.Volume, error) {
	missing := usecase.Fail(provision.ErrNotFound, "volume %q does not exist", id)
	if !v1alpha1.IsVolumeName(id) {
		return nil, missing
	}
	v := &v1alpha1.Volume{}
	err := s.live.Get(ctx, types.NamespacedName{Name: id}, v)
	switch {
	case apierrors.IsNotFound(err):
		return nil, missing
	case err != nil:
		return nil, fmt.Errorf("reading volume %s: %w", id, err)
	case v.DeletionTimestamp != nil:
		return nil, missing
	}
	return v, nil
}

// place returns a place where the volume is and can be read.
func (s *Service) place(v *v1alpha1.Volume) (v1alpha1.ReplicaSpec, error) {
	for _, replica := range v.Spec.Replicas {
		entry := v.Entry(replica.Node)
		if entry == nil || !entry.Ready {
			continue
		}
		if kind := provision.TypeOf(replica.Pool); provision.TraitsOf(kind).Copies == "" {
			return replica, usecase.Fail(provision.ErrUnsupported,
				"volume %s is of PoolClass %q, whose provisioner %s has no snapshots", v.Name, v.Spec.PoolClass, kind)
		}
		if away := s.nodes.Away(replica.Node); away != "" {
			return replica, usecase.Fail(provision.ErrUnavailable, "node %s, which has volume %s: %s", replica.Node, v.Name, away)
		}
		return replica, nil
	}
	return v1alpha1.ReplicaSpec{}, usecase.Fail(provision.ErrUnavailable, "volume %s is not ready on any node", v.Name)
}

// answered waits for the node's answer.
func (s *Service) answered(ctx context.Context, events *watcher, o *v1alpha1.Snapshot) (Snapshot, error) {
	latest, answer, gone, err := s.objects.Await(ctx, events, o, s.judge)
	switch {
	case err != nil:
		return Snapshot{}, err
	case gone:
		return Snapshot{}, deleted(o.Name)
	case answer.State == usecase.Refused:
		return Snapshot{}, s.withdraw(ctx, events, latest, answer.Err())
	case answer.State == usecase.Failed:
		return Snapshot{}, answer.Err()
	}
	return view(latest), nil
}

// withdraw deletes the Snapshot object and returns why, once nothing remains. If the
// node has taken the snapshot after all, it stays: the next call finds it.
func (s *Service) withdraw(ctx context.Context, events *watcher, o *v1alpha1.Snapshot, why error) error {
	err := s.client.Delete(ctx, o, client.Preconditions{UID: &o.UID, ResourceVersion: &o.ResourceVersion})
	switch {
	case apierrors.IsNotFound(err):
		return why
	case apierrors.IsConflict(err):
		return usecase.Fail(usecase.ErrBusy, "snapshot %s has changed while it was given up", o.Name)
	case err != nil:
		return fmt.Errorf("giving up snapshot %s: %w", o.Name, err)
	}
	// The deletion is durable: a call that ends here only misses its completion.
	_, _, _, _ = s.objects.Await(ctx, events, o, func(o *v1alpha1.Snapshot) usecase.Answer {
		return usecase.PlacedSnapshot(o).Removed(s.nodes)
	})
	return why
}
