package luns

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/usecase"
	"berth.dev/berth/internal/usecase/volumes"
)

// Service makes and expands volumes of shared disks; what else there is to do with a volume is the same for all.
// Its methods may be called concurrently.
type Service struct {
	*volumes.Service
	// client reads from the cache and writes to the API server.
	client client.Client
	// live reads from the API server.
	live    client.Reader
	objects usecase.Objects[*v1alpha1.Volume]
	// turn is taken by the call that chooses a LUN: calls that choose at the same time choose the same one, and all
	// but one begin anew.
	turn chan struct{}
}

// New makes a Service. The informer behind c must feed watchers. Both readers must show the Volumes of shared
// disks alone.
func New(c client.Client, live client.Reader, all *volumes.Service, watchers *volumes.Watchers) *Service {
	return &Service{Service: all, client: c, live: live, turn: make(chan struct{}, 1), objects: usecase.Objects[*v1alpha1.Volume]{
		Kind: "volume", New: func() *v1alpha1.Volume { return &v1alpha1.Volume{} }, Client: c, Live: live, Watchers: watchers,
	}}
}

// declared are the LUNs and the Volumes of shared disks, by the API server. That sends no Volumes of pools, of which
// there may be many more.
func (s *Service) declared(ctx context.Context) ([]v1alpha1.LUN, []v1alpha1.Volume, error) {
	return list(ctx, s.live, client.MatchingFields{"spec.driver": v1alpha1.DiskDriverName})
}

// list lists the LUNs, and the Volumes that are selected.
func list(ctx context.Context, from client.Reader, selected ...client.ListOption) ([]v1alpha1.LUN, []v1alpha1.Volume, error) {
	var luns v1alpha1.LUNList
	if err := from.List(ctx, &luns); err != nil {
		return nil, nil, fmt.Errorf("listing LUNs: %w", err)
	}
	var all v1alpha1.VolumeList
	if err := from.List(ctx, &all, selected...); err != nil {
		return nil, nil, fmt.Errorf("listing volumes: %w", err)
	}
	return luns.Items, all.Items, nil
}
