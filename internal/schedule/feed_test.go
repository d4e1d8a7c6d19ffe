package schedule

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	cachetesting "k8s.io/client-go/tools/cache/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/ledger"
)

// source is a running informer and the source that it reads from.
type source struct {
	*cachetesting.FakeControllerSource
	cache.SharedIndexInformer
}

func newSource(kind runtime.Object) source {
	s := cachetesting.NewFakeControllerSource()
	return source{s, cache.NewSharedIndexInformer(s, kind, 0, cache.Indexers{})}
}

func TestABookAnswersNothingBeforeEverythingWasListed(t *testing.T) {
	nodes, classes, volumes := newSource(&v1alpha1.StorageNode{}), newSource(&v1alpha1.PoolClass{}), newSource(&v1alpha1.Volume{})
	claims, pvs := newSource(&corev1.PersistentVolumeClaim{}), newSource(&corev1.PersistentVolume{})
	pods, storageClasses := newSource(&corev1.Pod{}), newSource(&storagev1.StorageClass{})
	classes.Add(poolClass(0))
	storageClasses.Add(local())
	nodes.Add(storageNode("n1", 10*gi))
	volumes.Add(volumeFor("1", "n1", 3*gi))
	claims.Add(pvc("2", 2*gi, selected("n1")))

	clock := clocktesting.NewFakeClock(time.Unix(0, 0))
	silence := &beats{away: map[string]string{}}
	book := NewBook()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- Feed(ctx, book, Informers{
			Driver:       driver.Local(),
			StorageNodes: nodes, PoolClasses: classes, Volumes: volumes, Claims: claims, PersistentVolumes: pvs,
			Pods: pods, StorageClasses: storageClasses, Heartbeats: silence, Clock: clock,
		})
	}()
	for _, s := range []source{nodes, classes, claims, pvs, pods, storageClasses} {
		go s.Run(ctx.Done())
	}
	eventually(t, "the node to be known", func() bool { return len(book.NodeNames()) == 1 })
	if verdict := bookFit(book, gi); verdict.Reason != ledger.NotSynced {
		t.Errorf("without the volumes it says %v", verdict.Reason)
	}
	short, done := context.WithCancel(t.Context())
	done()
	if err := book.WaitSynced(short); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting ended with %v", err)
	}

	go volumes.Run(ctx.Done())
	if err := book.WaitSynced(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := book.Room("n1", "fast").Largest; !book.Synced() || got != 5*gi {
		t.Errorf("%d MiB are free", got/mi)
	}

	pods.Add(podOn("n1"))
	eventually(t, "a pod to be charged", func() bool { return book.Room("n1", "fast").Largest == 4*gi })

	cancel()
	if err := <-ended; err != nil {
		t.Errorf("ended with %v", err)
	}
}

func podOn(node string) *corev1.Pod {
	p := podWith(scratch("1Gi"))
	p.Spec.NodeName = node
	return p
}

func bookFit(b *Book, bytes int64) ledger.Verdict {
	r, _ := b.Request(ledger.RequestOptions{Pod: "p"}, demand("9", bytes))
	return b.Node("n1").Fit(r)
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true, func(context.Context) (bool, error) { return is(), nil })
	if err != nil {
		t.Fatalf("waiting for %s: %v", what, err)
	}
}
