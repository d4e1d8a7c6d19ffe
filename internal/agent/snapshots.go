package agent

import (
	"context"
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/orphans"
	"berth.dev/berth/internal/agent/snapshot"
	"berth.dev/berth/internal/agent/worker"
)

// addSnapshots adds the snapshot worker and its sweeper.
func (a *Agent) addSnapshots(ctx context.Context, m ctrl.Manager, poke func()) error {
	// The sweeper may read before the controller has begun to watch.
	if _, err := m.GetCache().GetInformer(ctx, &v1alpha1.Snapshot{}, cache.BlockUntilSynced(false)); err != nil {
		return fmt.Errorf("watching snapshots: %w", err)
	}
	objects := snapshot.NewCluster(worker.NewCluster(a.options.Node, m.GetClient(), m.GetAPIReader()))
	snapshots := &snapshot.Worker{
		Base:        a.base(m, poke, a.observer.MayHaveSnapshot, a.orphanSnapshots),
		Objects:     objects,
		Provisioner: a.disks,
	}
	object := func(name string) client.Object {
		return &v1alpha1.Snapshot{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	s := &sweeper{agent: a, stale: objects.Stale, listed: snapshots.Listed, orphans: snapshots.Orphans, object: object, named: v1alpha1.IsSnapshotName}
	return a.addWorker(m, "snapshots", snapshots, s)
}

// unaccounted are the volumes and snapshots that no object accounts for.
func (a *Agent) unaccounted() map[string]orphans.Orphan {
	all := map[string]orphans.Orphan{}
	maps.Copy(all, a.orphans.All())
	maps.Copy(all, a.orphanSnapshots.All())
	return all
}
