package snapshot

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"berth.dev/berth/internal/agent/orphans"
	"berth.dev/berth/internal/provision"
)

// orphan keeps a snapshot of which the API server says that it has no object, unless it
// was told to forget it.
func (w *Worker) orphan(ctx context.Context, record *provision.Snapshot) (reconcile.Result, error) {
	return w.Orphans.Settle(ctx, orphans.Case{
		Record:  orphans.Record{Name: record.ID, Pool: record.Pool.Name, Size: record.Size},
		What:    what,
		Node:    w.Node,
		Message: fmt.Sprintf("snapshot %s on node %s has no Snapshot object: it is kept; adopt it, forget it, or restore the object", record.ID, w.Node),
		Word:    w.Word,
		Object: func(ctx context.Context) error {
			_, err := w.Objects.Live(ctx, record.ID)
			return err
		},
		Delete: func(ctx context.Context) error { return w.delete(ctx, record.ID) },
	})
}

// what the orphans of this package are.
const what = "snapshot"
