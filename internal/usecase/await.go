package usecase

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Await follows an object from its state o until judge has an answer from it. gone
// is true if the object was deleted meanwhile. An error is that of the context, and
// says what the call waited for.
func (s *Objects[T]) Await(ctx context.Context, events *Watcher[T], o T, judge func(T) Answer) (latest T, answer Answer, gone bool, err error) {
	for {
		answer = judge(o)
		if answer.State != Waiting {
			return o, answer, false, nil
		}
		e, err := events.next(ctx)
		if err != nil {
			return o, answer, false, fmt.Errorf("%s: %w", s.pending(o, answer), err)
		}
		switch {
		case e.deleted && e.object.GetUID() == o.GetUID():
			return o, answer, true, nil
		case !newer(e.object, o):
			// An event from before the write that this call waits on.
		case e.object.GetUID() != o.GetUID():
			return o, answer, true, nil
		default:
			o = e.object
		}
	}
}

func (s *Objects[T]) pending(o T, answer Answer) string {
	if answer.Node == "" {
		return fmt.Sprintf("waiting for %s %s", s.Kind, o.GetName())
	}
	return fmt.Sprintf("waiting for node %s to answer for %s %s", answer.Node, s.Kind, o.GetName())
}

// newer compares the versions of two objects of one kind. Versions that cannot be
// compared count as newer: an extra look is harmless.
func newer[T Object](a, b T) bool {
	order, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err != nil || order > 0
}
