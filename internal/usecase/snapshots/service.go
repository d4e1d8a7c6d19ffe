package snapshots

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/ledger"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/usecase"
)

// Watchers hands the informer's events about a snapshot to the calls that wait for
// them. The zero value is ready to use.
type Watchers = usecase.Watchers[*v1alpha1.Snapshot]

// Snapshot is a snapshot as its users see it.
type Snapshot struct {
	// ID is the CSI snapshot id.
	ID string
	// Volume is the CSI id of the source volume.
	Volume string
	// Size in bytes of the volume when it was taken.
	Size int64
	// Taken is when it was taken, by the node's clock.
	Taken time.Time
	// Ready says whether volumes can be made from it.
	Ready bool
}

// Orphans tells where nodes list data that has no object; the ledger implements it.
type Orphans interface {
	Orphan(o ledger.Owner) (node, pool string, found bool)
}

// Service carries out the use cases. Its methods may be called concurrently.
type Service struct {
	client  client.Client
	live    client.Reader
	nodes   usecase.Nodes
	orphans Orphans
	objects usecase.Objects[*v1alpha1.Snapshot]
}

// New makes a Service. The informer behind c must feed watchers.
func New(c client.Client, live client.Reader, nodes usecase.Nodes, orphans Orphans, watchers *Watchers) *Service {
	return &Service{client: c, live: live, nodes: nodes, orphans: orphans, objects: usecase.Objects[*v1alpha1.Snapshot]{
		Kind: "snapshot", New: func() *v1alpha1.Snapshot { return &v1alpha1.Snapshot{} }, Client: c, Live: live, Watchers: watchers,
	}}
}

// Delete deletes a snapshot and returns once every node that can be reached has removed
// it. A node that is away does not delay it, and removes the snapshot when it is back.
// If a volume is being made from the snapshot the error is provision.ErrInUse. A
// snapshot that does not exist, or never was Berth's, is no error.
func (s *Service) Delete(ctx context.Context, id string) error {
	if !v1alpha1.IsSnapshotName(id) {
		return nil
	}
	return s.objects.Delete(ctx, id, func(o *v1alpha1.Snapshot) usecase.Answer {
		return usecase.PlacedSnapshot(o).Removed(s.nodes)
	})
}

// Get returns a snapshot that was taken, or provision.ErrNotFound.
func (s *Service) Get(ctx context.Context, id string) (Snapshot, error) {
	if !v1alpha1.IsSnapshotName(id) {
		return Snapshot{}, usecase.Fail(provision.ErrNotFound, "snapshot %q does not exist: that is not an id of Berth's", id)
	}
	o, err := s.objects.Get(ctx, id)
	if err != nil {
		return Snapshot{}, err
	}
	if o == nil || !exists(o) {
		return Snapshot{}, usecase.Fail(provision.ErrNotFound, "snapshot %s does not exist", id)
	}
	return view(o), nil
}

// List returns up to limit snapshots in order of their ids, all of them if limit is
// 0, and a token for the rest, or an empty one. If volume is set it lists only the
// snapshots of that volume. A token that List did not make is usecase.ErrBadToken.
func (s *Service) List(ctx context.Context, volume, token string, limit int) ([]Snapshot, string, error) {
	after, err := usecase.DecodeToken(token, v1alpha1.IsSnapshotName)
	if err != nil {
		return nil, "", err
	}
	var list v1alpha1.SnapshotList
	if err := s.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, "", fmt.Errorf("listing snapshots: %w", err)
	}
	var all []Snapshot
	for i := range list.Items {
		if o := &list.Items[i]; exists(o) && (volume == "" || o.Spec.Volume == volume) {
			all = append(all, view(o))
		}
	}
	page, next := usecase.Page(all, func(o Snapshot) string { return o.ID }, after, limit)
	return page, next, nil
}

// exists reports whether a snapshot exists for users: taken, and not marked for deletion.
func exists(o *v1alpha1.Snapshot) bool { return o.DeletionTimestamp == nil && !view(o).Taken.IsZero() }

// view returns a Snapshot object as users see it.
func view(o *v1alpha1.Snapshot) Snapshot {
	out := Snapshot{ID: o.Name, Volume: o.Spec.Volume}
	for i := range o.Status.Replicas {
		entry := &o.Status.Replicas[i]
		if entry.Taken == nil || entry.State == v1alpha1.SnapshotGone {
			continue
		}
		out.Taken, out.Ready = entry.Taken.Time, out.Ready || entry.State == v1alpha1.SnapshotReady
		if entry.RestoreSize != nil {
			out.Size = entry.RestoreSize.Value()
		}
	}
	return out
}
