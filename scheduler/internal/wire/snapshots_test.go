package wire

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	toolscache "k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/schedule"
)

// registry is a cluster that learns of snapshots when it is told to.
type registry struct {
	cache.Cache
	mu       sync.Mutex
	unknown  error
	asked    chan struct{}
	handlers []toolscache.ResourceEventHandler
}

func (r *registry) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func (r *registry) GetInformer(_ context.Context, o client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.unknown != nil && o.GetObjectKind().GroupVersionKind() == schedule.VolumeSnapshotContentKind {
		r.asked <- struct{}{}
		return nil, r.unknown
	}
	return listening{registry: r}, nil
}

func (r *registry) learn() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unknown = nil
}

// listening is an informer that was read already.
type listening struct {
	cache.Informer
	registry *registry
}

func (l listening) AddEventHandler(h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	l.registry.mu.Lock()
	defer l.registry.mu.Unlock()
	l.registry.handlers = append(l.registry.handlers, h)
	return registered{}, nil
}

type registered struct {
	toolscache.ResourceEventHandlerRegistration
}

func (registered) HasSynced() bool { return true }

func TestSnapshotsAreFollowedFromWhenTheClusterKnowsThem(t *testing.T) {
	for name, unknown := range map[string]error{
		"the cluster does not know them": &meta.NoKindMatchError{},
		"the API server does not answer": errors.New("away"),
	} {
		t.Run(name, func(t *testing.T) {
			r := &registry{unknown: unknown, asked: make(chan struct{}, 9)}
			changes := make(chan struct{}, 9)
			s := &snapshots{from: r, changed: func() { changes <- struct{}{} }}
			clock := clocktesting.NewFakeClock(time.Unix(0, 0))
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- s.follow(ctx, clock) }()

			<-r.asked
			if s.reader() != nil || len(r.handlers) > 0 {
				t.Error("what the cluster does not know is read")
			}
			r.learn()
			clock.Step(lookForSnapshots)
			<-changes
			if s.reader() == nil || len(r.handlers) != 3 {
				t.Errorf("read: %t, and %d kinds are listened to", s.reader() != nil, len(r.handlers))
			}
			for _, h := range r.handlers {
				h.OnAdd(nil, false)
				h.OnUpdate(nil, nil)
				h.OnDelete(nil)
			}
			if len(changes) != 9 {
				t.Errorf("%d of 9 changes were heard", len(changes))
			}
			stop()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}

func TestSnapshotsAreNotFollowedAfterTheEnd(t *testing.T) {
	r := &registry{unknown: &meta.NoKindMatchError{}, asked: make(chan struct{}, 9)}
	s := &snapshots{from: r, changed: func() {}}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := s.follow(ctx, clocktesting.NewFakeClock(time.Unix(0, 0))); err != nil || s.reader() != nil {
		t.Errorf("%v, %v", err, s.reader())
	}
}

func TestACachedVolumeSnapshotKeepsOnlyTheFieldsThatAreRead(t *testing.T) {
	vs := untyped(schedule.VolumeSnapshotKind)
	vs.SetAnnotations(map[string]string{"a": "long"})
	kept, err := cutSnapshot(vs)
	if o, ok := kept.(*unstructured.Unstructured); err != nil || !ok || o.GetAnnotations() != nil || o.GroupVersionKind() != schedule.VolumeSnapshotKind {
		t.Errorf("kept %v, %v", kept, err)
	}
	own := &v1alpha1.Snapshot{}
	own.Spec.Volume = "v"
	if kept, err := cutSnapshot(own); err != nil || kept != own {
		t.Errorf("kept %v, %v", kept, err)
	}
}

// restores says the same of every pod as reader, once a snapshot is ready.
type restores struct{ ready bool }

func (r *restores) Read(ctx context.Context, pod *corev1.Pod) (*schedule.PodVolumes, error) {
	want, err := reader{}.Read(ctx, pod)
	want.Sources = []*schedule.Source{{Claim: "a", Kind: "VolumeSnapshot", Name: "nightly"}}
	if !r.ready {
		want.Unready = "the snapshot is not ready"
	}
	return want, err
}

func TestPodsThatWaitForASourceAreWokenByItAlone(t *testing.T) {
	s := newStation(t)
	from := &restores{}
	s.use(from)
	s.refuse(t, podOf("a", "one"))
	s.sourced()
	s.look(t.Context())
	if one, _ := s.woken(); one != nil {
		t.Errorf("woken are %v before the source is ready", one)
	}
	from.ready = true
	s.freed("n1") // which is full: not by itself a reason
	s.look(t.Context())
	if one, _ := s.woken(); one != nil {
		t.Errorf("woken are %v although nothing was heard of the source", one)
	}
	s.sourced()
	s.look(t.Context())
	if one, _ := s.woken(); !slices.Equal(one, []string{"d/a"}) {
		t.Errorf("woken are %v, want a", one)
	}
}

func TestAChangeOfASourceIsIgnoredIfNoPodWaitsForOne(t *testing.T) {
	s := newStation(t)
	s.refuse(t, podOf("a", "one"))
	s.sourced()
	if s.sources || len(s.due) > 0 {
		t.Error("it is looked for pods that are woken by a source")
	}
}
