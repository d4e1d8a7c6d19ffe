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

// MayFormat is nil if the agent of a node says that it makes filesystems with the
// options that a Volume names. An older one makes them without, and they are made once.
// Pass the API server and not a cache, as for MayCopy.
func MayFormat(ctx context.Context, live client.Reader, node string) error {
	report := &v1alpha1.StorageNode{}
	err := live.Get(ctx, types.NamespacedName{Name: node}, report)
	switch {
	case apierrors.IsNotFound(err):
		return Fail(provision.ErrUnavailable, "node %s: its berth-agent has not reported yet", node)
	case err != nil:
		return fmt.Errorf("reading what the agent of node %s can do: %w", node, err)
	case !report.Has(v1alpha1.FeatureMkfsOptions):
		return Fail(provision.ErrUnavailable, "node %s: its berth-agent does not say that it makes filesystems with options of mkfs: upgrade it", node)
	}
	return nil
}
