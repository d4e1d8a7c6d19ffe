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

// MayCopy returns nil if the agent of a node says that it takes snapshots, and makes
// volumes as copies, in a pool. An older agent does not know of snapshots, and makes a
// blank volume in place of a copy. Pass a reader of the API server and not a cache: the
// cache may still show the report of an agent that an older one has replaced.
func MayCopy(ctx context.Context, live client.Reader, node, pool string) error {
	return May(ctx, live, node, provision.TraitsOf(provision.TypeOf(pool)).Copies)
}

// May returns nil if the agent of a node reports a feature, or if none is asked. Pass a reader
// of the API server and not a cache, as for MayCopy.
func May(ctx context.Context, live client.Reader, node, feature string) error {
	if feature == "" {
		return nil
	}
	report := &v1alpha1.StorageNode{}
	err := live.Get(ctx, types.NamespacedName{Name: node}, report)
	switch {
	case apierrors.IsNotFound(err):
		return Fail(provision.ErrUnavailable, "node %s: its berth-agent has not reported yet", node)
	case err != nil:
		return fmt.Errorf("reading what the agent of node %s can do: %w", node, err)
	case !report.Has(feature):
		return Fail(provision.ErrUnavailable, "node %s: its berth-agent does not say that it %s: upgrade it", node, v1alpha1.Ability(feature))
	}
	return nil
}
