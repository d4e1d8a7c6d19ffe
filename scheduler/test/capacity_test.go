package test

import (
	"context"
	"sync"
	"testing"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest"
	"berth.dev/berth/internal/controller/controllertest"
)

// publish publishes a node's free space once and for all: the figure that stock
// schedulers go by is then always too high.
func (b *bench) publish(t *testing.T, n *controllertest.Node, bytes int64) *storagev1.CSIStorageCapacity {
	t.Helper()
	published := &storagev1.CSIStorageCapacity{
		ObjectMeta: metav1.ObjectMeta{Namespace: apitest.Namespace, Name: n.Name}, StorageClassName: b.class,
		NodeTopology: &metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.TopologyKey: n.Name}},
		Capacity:     resource.NewQuantity(bytes, resource.BinarySI),
	}
	b.create(t, published)
	t.Cleanup(func() { _ = b.Client.Delete(context.WithoutCancel(t.Context()), published) })
	return published
}

// publishAlways keeps the published capacity at the node's free space. It publishes a
// change one look after it has seen it: an agent, too, publishes later than the watches
// of schedulers and controllers tell of a pod that has ended.
func (b *bench) publishAlways(t *testing.T, n *controllertest.Node) {
	t.Helper()
	published := b.publish(t, n, b.totals[n.Name])
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var done sync.WaitGroup
	done.Go(func() {
		seen := published.Capacity.Value()
		err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			free, err := b.free(ctx, n)
			settled := free == seen
			seen = free
			if err != nil || !settled || free == published.Capacity.Value() {
				return false, err
			}
			published.Capacity = resource.NewQuantity(free, resource.BinarySI)
			return false, b.Client.Update(ctx, published)
		})
		if ctx.Err() == nil {
			t.Errorf("publishing the capacity of %s: %v", n.Name, err)
		}
	})
	t.Cleanup(func() { stop(); done.Wait() })
}

// free is the space that a node's pool really has left.
func (b *bench) free(ctx context.Context, n *controllertest.Node) (int64, error) {
	total := b.totals[n.Name]
	var list v1alpha1.VolumeList
	if err := b.Client.List(ctx, &list, client.HasLabels{v1alpha1.ReplicaLabel(n.Name)}); err != nil {
		return 0, err
	}
	for i := range list.Items {
		total -= n.Held(list.Items[i].Name)
	}
	bound, _, err := b.pods(ctx)
	for i := range bound {
		if bound[i].Spec.NodeName == n.Name {
			total -= inline(&bound[i])
		}
	}
	return total, err
}
