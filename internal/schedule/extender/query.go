package extender

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"berth.dev/berth/internal/ledger"
	"berth.dev/berth/internal/schedule"
)

// query is what the ledger is asked about one pod.
type query struct {
	book    *schedule.Book
	options ledger.RequestOptions
	volumes *schedule.PodVolumes
	static  schedule.Static
	// all is the request for everything that is wanted, which is what is asked of nearly
	// every node.
	all *ledger.Request
}

func (e *Extender) query(ctx context.Context, pod *corev1.Pod, v *schedule.PodVolumes) (*query, error) {
	q := &query{book: e.Book, options: ledger.RequestOptions{Pod: string(pod.UID), Strategy: e.Strategy}, volumes: v}
	q.all, _ = e.Book.Request(q.options, v.Demands()...)
	var err error
	q.static, err = schedule.FindStatic(ctx, e.Objects, v.Wanted)
	return q, err
}

// on is what is asked of a node: without the claims that a static PersistentVolume serves
// there. It is nil where they serve everything that is wanted.
func (q *query) on(ctx context.Context, node string) (*ledger.Request, error) {
	if !q.static.Any() {
		return q.all, nil
	}
	unmatched, err := q.static.Unmatched(ctx, q.volumes.Wanted, node)
	switch {
	case err != nil:
		return nil, err
	case len(unmatched) == len(q.volumes.Wanted):
		return q.all, nil
	case len(unmatched) == 0:
		return nil, nil
	}
	r, _ := q.book.Request(q.options, (&schedule.PodVolumes{Wanted: unmatched}).Demands()...)
	return r, nil
}
