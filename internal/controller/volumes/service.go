package volumes

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/keyed"
	"berth.dev/berth/internal/provision"
)

// Nodes tells which nodes can answer.
type Nodes interface {
	// Away is empty, or says why a node cannot be expected to answer now.
	Away(node string) string
	// Labelled is the node that a replica label stands for, or empty if there is
	// no such Node.
	Labelled(label string) string
}

// Service carries out the use cases. Its methods may be called concurrently.
type Service struct {
	// client reads from the cache and writes to the API server.
	client client.Client
	// live reads from the API server.
	live     client.Reader
	nodes    Nodes
	ledger   Ledger
	watchers *Watchers
	locks    keyed.Locks[string]
}

// New makes a Service. watchers must be fed by the informer behind c, after the
// ledger is. The ledger must be synced before the first call.
func New(c client.Client, live client.Reader, nodes Nodes, l Ledger, watchers *Watchers) *Service {
	return &Service{client: c, live: live, nodes: nodes, ledger: l, watchers: watchers}
}

// lock keeps a second call for the same volume out. It does not queue: the
// caller is a sidecar that comes back by itself, and a queue of cancelled calls
// would only delay the one that counts.
func (s *Service) lock(name string) (unlock func(), err error) {
	unlock, err = s.locks.TryLock(name)
	if err != nil {
		return nil, fail(ErrBusy, "another operation on volume %s is in progress", name)
	}
	return unlock, nil
}

// get reads a volume from the API server, or returns nil.
func (s *Service) get(ctx context.Context, name string) (*v1alpha1.Volume, error) {
	v := &v1alpha1.Volume{}
	err := s.live.Get(ctx, types.NamespacedName{Name: name}, v)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading volume %s: %w", name, err)
	}
	return v, nil
}

// cached reads a volume from the cache, or returns nil.
func (s *Service) cached(ctx context.Context, name string) (*v1alpha1.Volume, error) {
	v := &v1alpha1.Volume{}
	err := s.client.Get(ctx, types.NamespacedName{Name: name}, v)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading volume %s: %w", name, err)
	}
	return v, nil
}

// Get returns a volume, or provision.ErrNotFound.
func (s *Service) Get(ctx context.Context, id string) (Volume, error) {
	v, err := s.existing(ctx, id)
	if err != nil {
		return Volume{}, err
	}
	return view(v), nil
}

// existing reads a volume that must be there and is not on its way out.
func (s *Service) existing(ctx context.Context, id string) (*v1alpha1.Volume, error) {
	if !v1alpha1.IsVolumeName(id) {
		return nil, fail(provision.ErrNotFound, "volume %q does not exist: that is not an id of Berth's", id)
	}
	v, err := s.get(ctx, id)
	if err != nil {
		return nil, err
	}
	if v == nil || v.DeletionTimestamp != nil {
		return nil, fail(provision.ErrNotFound, "volume %s does not exist", id)
	}
	return v, nil
}
