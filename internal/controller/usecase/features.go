package usecase

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
)

// MayCopy is nil if the agent of a node says that it takes snapshots, and makes
// volumes as copies, in a pool. An older one does not hear of snapshots, and makes a
// blank volume of a copy. Pass the API server and not a cache: what a node's agent said
// before an older one took its place must not count.
func MayCopy(ctx context.Context, live client.Reader, node, pool string) error {
	if provision.TypeOf(pool) == provision.LVM {
		return may(ctx, live, node, v1alpha1.FeatureCopiesThick, "it makes snapshots and copies of thick volumes")
	}
	return may(ctx, live, node, v1alpha1.FeatureCopies, "it makes snapshots and copies")
}

// MayFormat is nil if the agent of a node says that it makes filesystems with the
// options that a Volume names. An older one makes them without, and they are made once.
// Pass the API server and not a cache, as for MayCopy.
func MayFormat(ctx context.Context, live client.Reader, node string) error {
	return may(ctx, live, node, v1alpha1.FeatureMkfsOptions, "it makes filesystems with options of mkfs")
}

// MayMakeDatasets is nil if the agent of a node says that it makes filesystems of ZFS. An
// older one carves a block device for them. Pass the API server and not a cache, as for MayCopy.
func MayMakeDatasets(ctx context.Context, live client.Reader, node string) error {
	return may(ctx, live, node, v1alpha1.FeatureDatasets, "it makes filesystems of ZFS")
}

func may(ctx context.Context, live client.Reader, node, feature, what string) error {
	report := &v1alpha1.StorageNode{}
	err := live.Get(ctx, types.NamespacedName{Name: node}, report)
	switch {
	case apierrors.IsNotFound(err):
		return Fail(provision.ErrUnavailable, "node %s: its berth-agent has not reported yet", node)
	case err != nil:
		return fmt.Errorf("reading what the agent of node %s can do: %w", node, err)
	case !report.Has(feature):
		return Fail(provision.ErrUnavailable, "node %s: its berth-agent does not say that %s: upgrade it", node, what)
	}
	return nil
}
