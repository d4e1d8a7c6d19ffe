package controller_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/controller/controllertest"
	"berth.dev/berth/internal/usecase/volumes"
)

// errCrash is the error that the process sees when it ends.
var errCrash = errors.New("the process ends here")

// crash ends a process at one of its writes, before or after the API server has got
// it. Later writes of the process do not arrive.
type crash struct {
	at     int // counting from 1; 0 never comes
	before bool
	down   chan struct{}

	mu     sync.Mutex
	writes int
}

func newCrash(at int, before bool) *crash {
	return &crash{at: at, before: before, down: make(chan struct{})}
}

// effect performs one write of the process. Only writes to Volumes and Snapshots are counted.
// A lost compare-and-swap is not: it had no effect.
func (c *crash) effect(object client.Object, write func() error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isDown() {
		return errCrash
	}
	switch object.(type) {
	case *v1alpha1.Volume, *v1alpha1.Snapshot:
	default:
		return write()
	}
	due := c.writes+1 == c.at
	if !due || !c.before {
		if err := write(); err != nil {
			return err
		}
	}
	c.writes++
	if due {
		close(c.down)
		return errCrash
	}
	return nil
}

func (c *crash) isDown() bool {
	select {
	case <-c.down:
		return true
	default:
		return false
	}
}

func (c *crash) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.writes
}

func (c *crash) wrap(inner client.Client) client.Client {
	return interceptor.NewClient(unwatched{inner}, interceptor.Funcs{
		Create: func(ctx context.Context, w client.WithWatch, o client.Object, options ...client.CreateOption) error {
			return c.effect(o, func() error { return w.Create(ctx, o, options...) })
		},
		Update: func(ctx context.Context, w client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			return c.effect(o, func() error { return w.Update(ctx, o, options...) })
		},
		Delete: func(ctx context.Context, w client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			return c.effect(o, func() error { return w.Delete(ctx, o, options...) })
		},
		SubResourceUpdate: func(ctx context.Context, w client.Client, sub string, o client.Object, options ...client.SubResourceUpdateOption) error {
			return c.effect(o, func() error { return w.SubResource(sub).Update(ctx, o, options...) })
		},
	})
}

// unwatched adds a Watch method that fails, so that the client can be intercepted.
type unwatched struct{ client.Client }

func (unwatched) Watch(context.Context, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
	return nil, errors.New("watching goes through the cache")
}

func TestACrashAtAnyWriteConvergesToTheSameEnd(t *testing.T) {
	for name, newStory := range stories {
		t.Run(name, func(t *testing.T) {
			writes := 0
			t.Run("no crash", func(t *testing.T) { writes = play(t, newStory, newCrash(0, false)) })
			if writes == 0 {
				t.Fatal("the story writes nothing")
			}
			for at := 1; at <= writes; at++ {
				t.Run(fmt.Sprintf("before write %d", at), func(t *testing.T) { play(t, newStory, newCrash(at, true)) })
				t.Run(fmt.Sprintf("after write %d", at), func(t *testing.T) { play(t, newStory, newCrash(at, false)) })
			}
		})
	}
}

// play runs a story in a process that crashes once, and from there in another
// one. It returns the number of writes of the first.
func play(t *testing.T, newStory func(*testing.T, *cluster) story, c *crash) int {
	t.Helper()
	cluster := newCluster(t)
	s := newStory(t, cluster)
	pl := &player{cluster: cluster, crash: c, process: controllertest.Start(t, cluster.Environment, controllertest.WithWrap(c.wrap))}
	for _, call := range s.calls {
		pl.persist(t, call)
	}
	end := func(context.Context, *volumes.Service) error { return s.end() }
	pl.persist(t, end)
	if c.at > 0 {
		await(t, fmt.Sprintf("the crash at write %d, of %d so far", c.at, c.count()), c.isDown)
		pl.persist(t, end)
	}
	return c.count()
}

// player is the sidecar and the kubelet in one: it repeats calls and restarts
// the process.
type player struct {
	*cluster
	crash     *crash
	process   *controllertest.Process
	restarted bool
}

// persist repeats a call, across the crash, until it has succeeded.
func (pl *player) persist(t *testing.T, call call) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		if pl.crash.isDown() && !pl.restarted {
			pl.process.Stop(t)
			pl.process, pl.restarted = controllertest.Start(t, pl.Environment), true
		}
		last = pl.attempt(t, call)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("it does not converge: %v", last)
	}
}

// attempt makes one call. The call ends when its process ends.
func (pl *player) attempt(t *testing.T, call call) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if !pl.restarted {
		go func() {
			select {
			case <-pl.crash.down:
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	return call(ctx, pl.process.Volumes)
}
