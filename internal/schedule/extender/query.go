package extender

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"berth.dev/berth/internal/ledger"
	"berth.dev/berth/internal/schedule"
)

// query is the question to the ledger about one pod.
type query struct {
	book    *schedule.Book
	options ledger.RequestOptions
	volumes *schedule.PodVolumes
	static  schedule.Static
	// all is the request for all wanted volumes. Nearly every node is asked for it.
	all *ledger.Request
}

func (e *Extender) query(ctx context.Context, pod *corev1.Pod, v *schedule.PodVolumes) (*query, error) {
	q := &query{book: e.Book, options: ledger.RequestOptions{Pod: string(pod.UID), Strategy: e.Strategy}, volumes: v}
	q.all, _ = e.Book.Request(q.options, v.Demands()...)
	var err error
	q.static, err = schedule.FindStatic(ctx, e.Objects, v.Wanted)
	return q, err
}

// on returns the request to a node: without the claims that a static PersistentVolume
// serves there. It is nil if these serve all wanted volumes.
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
