package orphans

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/decide"
	"berth.dev/berth/internal/decide/orphan"
)

// Case is data that has no object, as the API server said.
type Case struct {
	orphan.Record
	// What is the kind of the data, "volume" or "snapshot", and Node the node that it is on.
	What, Node string
	// Message says that it has no object, and what to do.
	Message string
	// Word says whether it may be deleted.
	Word func(ctx context.Context, r orphan.Record) (orphan.Answer, error)
	// Object reads its object from the API server.
	Object func(ctx context.Context) error
	// Delete deletes the data, and fails while it is used.
	Delete func(ctx context.Context) error
}

// staleDelay lets the watch see an object that was made in the meantime.
const staleDelay = 20 * time.Millisecond

// Settle keeps an orphan, or deletes it if Word allows that and it still has no object.
func (o *Set) Settle(ctx context.Context, c Case) (reconcile.Result, error) {
	c.Known = o.Known(c.Name)
	why := Orphan{Reason: v1alpha1.OrphanNoObject, Message: c.Message}
	answer, err := c.Word(ctx, c.Record)
	if err != nil || answer.Verb != decide.Remove {
		if answer.Reason == orphan.ReasonChanged || answer.Reason == orphan.ReasonStale {
			why.Message = answer.Message
		}
		o.Keep(ctx, c.What, c.Name, why)
		return reconcile.Result{RequeueAfter: answer.Again}, err
	}
	// After the word, so that an object that was made meanwhile saves the data.
	if err := c.Object(ctx); !apierrors.IsNotFound(err) {
		return reconcile.Result{RequeueAfter: staleDelay}, err
	}
	if err := c.Delete(ctx); err != nil {
		why.Message = fmt.Sprintf("%s %s on node %s is to be deleted (%s), and cannot be: %v", c.What, c.Name, c.Node, answer.Message, err)
		o.Keep(ctx, c.What, c.Name, why)
		return reconcile.Result{}, err
	}
	o.Forget(c.Name)
	log.FromContext(ctx).Info("orphan deleted", "kind", c.What, "name", c.Name, "pool", c.Pool, "bytes", c.Size, "reason", answer.Reason, "message", answer.Message)
	return reconcile.Result{}, nil
}

// Keep notes an orphan that stays where it is, and logs it if that is news.
func (o *Set) Keep(ctx context.Context, what, name string, why Orphan) {
	if o.Add(name, why) {
		log.FromContext(ctx).Info("orphan kept", "kind", what, "name", name, "reason", why.Reason, "message", why.Message)
	}
}
