package worker

import (
	"context"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/orphans"
	"berth.dev/berth/internal/decide/orphan"
)

// An API server that was restored from a backup does not have the object. The watch may
// still show the one that was there before the restore, with any wish.
func TestTheDataOfAnObjectThatOnlyTheWatchShowsIsKept(t *testing.T) {
	b := &Base{Node: "n", Orphans: &orphans.Set{}, Word: func(context.Context, orphan.Record) (orphan.Answer, error) { return orphan.Answer{}, nil }}
	_, err := b.Settle(t.Context(), Unaccounted{
		Record: orphan.Record{Name: "v"}, What: "volume", Watched: true,
		Read:   func(context.Context) error { return missing },
		Decide: func() (bool, string) { return true, "" },
		Delete: func(context.Context) error { t.Error("it was deleted"); return nil },
		Deleted: func(_ context.Context, err error) (reconcile.Result, error) {
			t.Error("it was reported as deleted")
			return reconcile.Result{}, err
		},
	})
	if got := b.Orphans.All()["v"].Reason; err != nil || got != v1alpha1.OrphanNoObject {
		t.Errorf("%v; it is an orphan because %q", err, got)
	}
}
