package agent

import (
	"context"
	"fmt"
	"maps"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/orphans"
	"berth.dev/berth/internal/agent/snapshot"
	"berth.dev/berth/internal/agent/worker"
	decidesnapshot "berth.dev/berth/internal/decide/snapshot"
)

// addSnapshots adds the snapshot worker and its sweeper.
func (a *Agent) addSnapshots(ctx context.Context, m ctrl.Manager, poke func()) error {
	// The sweeper may read before the controller has begun to watch.
	if _, err := m.GetCache().GetInformer(ctx, &v1alpha1.Snapshot{}, cache.BlockUntilSynced(false)); err != nil {
		return fmt.Errorf("watching snapshots: %w", err)
	}
	own := a.options.Driver.View(m.GetClient())
	snapshots := &snapshot.Worker{
		Base:        a.base(m, poke, a.observer.MayHaveSnapshot, a.orphanSnapshots),
		Objects:     snapshot.Cluster{Cluster: worker.NewCluster[v1alpha1.Snapshot](a.options.Node, own, a.options.Driver.Live(m.GetAPIReader()))},
		Provisioner: a.disks,
	}
	s := &sweeper{
		agent: a, stale: staleOf(a, own, &v1alpha1.SnapshotList{}, decidesnapshot.Kind), object: &v1alpha1.Snapshot{},
		listed: snapshots.Listed, orphans: snapshots.Orphans, named: v1alpha1.IsSnapshotName,
	}
	return a.addWorker(m, "snapshots", snapshots, s)
}

// unaccounted are the volumes and snapshots that no object accounts for.
func (a *Agent) unaccounted() map[string]orphans.Orphan {
	all := map[string]orphans.Orphan{}
	maps.Copy(all, a.orphans.All())
	maps.Copy(all, a.orphanSnapshots.All())
	return all
}
