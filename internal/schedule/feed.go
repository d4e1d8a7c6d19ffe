package schedule

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"berth.dev/berth/internal/driver"
)

// Informer is the common part of the shared informers of client-go and of controller-runtime.
type Informer interface {
	AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error)
}

// Heartbeats tells which nodes can answer.
type Heartbeats interface {
	// Away is empty, or says why a node cannot be expected to answer now.
	Away(node string) string
	// Notify calls back after every event of a node. Silence is no event: Feed looks for it.
	Notify(heard func(node string))
}

// Informers feed a Book.
type Informers struct {
	// Driver whose claims, PersistentVolumes and pods are told. The Volumes of all drivers are.
	Driver                                          driver.Driver
	StorageNodes, PoolClasses, Volumes              Informer
	Claims, PersistentVolumes, Pods, StorageClasses Informer
	// Heartbeats decide, with a node's own report, whether it takes anything new.
	Heartbeats Heartbeats
	// Heard tells whether Heartbeats were told of every node. Feed waits for that first.
	Heard []cache.InformerSynced
	// Returned, if set, is called with each node whose agent is heard of again after
	// a silence: no event of the node's StorageNode tells that. It must not block.
	Returned func(node string)
	Clock    clock.WithTicker
	Log      logr.Logger
}

// lookAtHeartbeats is how often Feed looks for silence. It comes on top of the length
// of a Lease, after which an agent counts as silent.
const lookAtHeartbeats = time.Second

// Feed tells the book everything that the informers know, from now until ctx ends, and
// marks it synced once all was told. The informers must be running, or another goroutine
// must start them. It returns early only with an error, or nil when it was stopped.
func Feed(ctx context.Context, book *Book, from Informers) error {
	f := newFeeder(book, from)
	if !cache.WaitForCacheSync(ctx.Done(), from.Heard...) {
		return nil
	}
	from.Heartbeats.Notify(f.heard)
	// The classes come first: only they tell how much room a claim takes.
	for _, step := range [][]listener{
		{
			{from.StorageClasses, handler(f.observeStorageClass, f.forgetStorageClass)},
			{from.PoolClasses, handler(f.observePoolClass, f.forgetPoolClass)},
		},
		{
			{from.StorageNodes, handler(f.observeNode, f.forgetNode)},
			{from.Volumes, handler(f.observeVolume, f.forgetVolume)},
			{from.Claims, handler(f.observeClaim, f.forgetClaim)},
			{from.PersistentVolumes, handler(f.observePersistentVolume, f.forgetPersistentVolume)},
			{from.Pods, handler(f.observePod, f.forgetPod)},
		},
	} {
		heard, err := listen(step)
		if err != nil {
			return err
		}
		if !cache.WaitForCacheSync(ctx.Done(), heard...) {
			return nil
		}
	}
	book.setSynced()
	f.followHeartbeats(ctx)
	return nil
}

// listener is a handler and its informer.
type listener struct {
	Informer
	cache.ResourceEventHandler
}

// listen adds handlers. They stay until the informers end.
func listen(step []listener) (heard []cache.InformerSynced, err error) {
	for _, l := range step {
		registration, addErr := l.AddEventHandler(l.ResourceEventHandler)
		if addErr != nil {
			err = errors.Join(err, fmt.Errorf("listening to an informer: %w", addErr))
			continue
		}
		heard = append(heard, registration.HasSynced)
	}
	return heard, err
}

// handler unwraps the objects of an informer. An update from one object to another of
// the same name is a deletion that was missed.
func handler[T metav1.Object](observe, forget func(T)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if o, ok := obj.(T); ok {
				observe(o)
			}
		},
		UpdateFunc: func(old, obj any) {
			o, ok := obj.(T)
			if !ok {
				return
			}
			if before, ok := old.(T); ok && before.GetUID() != o.GetUID() {
				forget(before)
			}
			observe(o)
		},
		DeleteFunc: func(obj any) {
			if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = unknown.Obj
			}
			if o, ok := obj.(T); ok {
				forget(o)
			}
		},
	}
}

// followHeartbeats looks for agents that have fallen silent.
func (f *feeder) followHeartbeats(ctx context.Context) {
	ticker := f.from.Clock.NewTicker(lookAtHeartbeats)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			f.lookAtHeartbeats()
		}
	}
}
