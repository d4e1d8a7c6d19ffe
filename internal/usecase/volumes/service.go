package volumes

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/usecase"
)

// Nodes tells which nodes can answer, and which nodes are closed to new pods.
type Nodes interface {
	usecase.Nodes
	// Shut reports whether a cordon or a taint keeps new pods from a node.
	Shut(node string) bool
}

// Watchers hands the informer's events about a volume to the calls that wait
// for them. The zero value is ready to use.
type Watchers = usecase.Watchers[*v1alpha1.Volume]

type watcher = usecase.Watcher[*v1alpha1.Volume]

// Service carries out the use cases. Its methods may be called concurrently.
type Service struct {
	// client reads from the cache and writes to the API server.
	client client.Client
	// live reads from the API server.
	live    client.Reader
	nodes   Nodes
	ledger  Ledger
	objects usecase.Objects[*v1alpha1.Volume]
}

// New makes a Service. The informer behind c must feed watchers, after it has fed the
// ledger. The ledger must be synced before the first call.
func New(c client.Client, live client.Reader, nodes Nodes, l Ledger, watchers *Watchers) *Service {
	return &Service{client: c, live: live, nodes: nodes, ledger: l, objects: usecase.Objects[*v1alpha1.Volume]{
		Kind: "volume", New: func() *v1alpha1.Volume { return &v1alpha1.Volume{} }, Client: c, Live: live, Watchers: watchers,
	}}
}

// Get returns a volume, or provision.ErrNotFound.
func (s *Service) Get(ctx context.Context, id string) (Volume, error) {
	v, err := s.existing(ctx, id)
	if err != nil {
		return Volume{}, err
	}
	return View(v), nil
}

// existing reads a volume that must exist and not be marked for deletion.
func (s *Service) existing(ctx context.Context, id string) (*v1alpha1.Volume, error) {
	if !v1alpha1.IsVolumeName(id) {
		return nil, fail(provision.ErrNotFound, "volume %q does not exist: that is not an id of Berth's", id)
	}
	v, err := s.objects.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	if v == nil || v.DeletionTimestamp != nil {
		return nil, fail(provision.ErrNotFound, "volume %s does not exist", id)
	}
	return v, nil
}
