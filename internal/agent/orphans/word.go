package orphans

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/decide"
	"berth.dev/berth/internal/decide/orphan"
)

// RequestTimeout bounds one request of the agent to the API server.
const RequestTimeout = 15 * time.Second

// Word asks the StorageNode whether the orphans of its node may be deleted.
type Word struct {
	Node string
	// Watched reads the cache, which may be stale, and Live the API server.
	Watched, Live client.Reader
	// Retention is how long orphans are kept; 0 is for ever.
	Retention time.Duration
	Clock     clock.PassiveClock
}

// On decides on an orphan.
func (w Word) On(ctx context.Context, r orphan.Record) (answer orphan.Answer, err error) {
	_, err = w.ask(ctx, func(n *v1alpha1.StorageNode) bool {
		answer = orphan.Decide(n, r, w.Retention, w.Clock.Now())
		return answer.Verb == decide.Remove
	})
	if err != nil {
		return orphan.Answer{}, err
	}
	return answer, nil
}

// Waived says whether an administrator has given up data that is lost with its pool.
func (w Word) Waived(ctx context.Context, l orphan.Lost) (bool, error) {
	return w.ask(ctx, func(n *v1alpha1.StorageNode) bool { return orphan.Waived(n, l, w.Clock.Now()) })
}

// ask asks the API server only where the watch says that the data may go; then the API server's
// answer counts.
func (w Word) ask(ctx context.Context, goes func(n *v1alpha1.StorageNode) bool) (bool, error) {
	for _, reader := range []client.Reader{w.Watched, w.Live} {
		if n, err := w.read(ctx, reader); err != nil || !goes(n) {
			return false, err
		}
	}
	return true, nil
}

// read returns the node's StorageNode, empty if there is none.
func (w Word) read(ctx context.Context, reader client.Reader) (*v1alpha1.StorageNode, error) {
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	n := &v1alpha1.StorageNode{}
	if err := reader.Get(ctx, client.ObjectKey{Name: w.Node}, n); err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("reading what is to be forgotten: %w", err)
	}
	return n, nil
}
