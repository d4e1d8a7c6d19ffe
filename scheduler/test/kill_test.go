package test

import (
	"context"
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
)

// killSeed repeats the kills of a run that failed, as far as the processes do.
var killSeed = flag.Uint64("kill-seed", rand.Uint64(), "seed of the moments at which the scheduler is killed")

const (
	bursts = 10
	// middle is about how many writes make half a burst.
	middle = 15
	// quiet is how long nothing is written when a burst is over.
	quiet = 1500 * time.Millisecond
)

func TestASchedulerThatIsKilledInTheMiddleOfABurst(t *testing.T) {
	t.Logf("-kill-seed=%d", *killSeed)
	random := rand.New(rand.NewPCG(*killSeed, 0)) //nolint:gosec // moments, no secrets
	c := newCluster(t)
	for range bursts {
		c := c.another(t)
		n := c.node(t, "a", 10*gi)
		writes := c.writes(t)
		c.burst(t, 5, c.withClaims(t, 1, 3*gi))
		for _, most := range []int{2 * middle, middle} { // the second starts with the remains of the first
			if !after(t, writes, 1+random.IntN(most)) {
				t.Log("killed when all was quiet")
			}
			c.scheduler.Kill()
			c.startScheduler(t)
			drain(writes) // or these writes would have the next one killed at its start
		}
		_, waiting := c.settle(t, 3)
		c.checkFull(t, n, 1, waiting)
		c.wantNothingLeft(t, n)
	}
}

// another is the same processes with a class, a namespace and nodes of its own.
func (c *cluster) another(t *testing.T) *cluster {
	t.Helper()
	next := *c
	next.bench = newBench(t, c.Environment)
	t.Cleanup(func() { next.clean(t) })
	return &next
}

// writes tells of everything that is written to place the cluster's pods.
func (b *bench) writes(t *testing.T) <-chan struct{} {
	t.Helper()
	w, err := client.NewWithWatch(b.Config, client.Options{Scheme: b.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	t.Cleanup(stop)
	seen := make(chan struct{}, 1000) // more than a burst has
	for list, in := range map[client.ObjectList]string{
		&corev1.PodList{}: b.class, &corev1.PersistentVolumeClaimList{}: b.class, &v1alpha1.VolumeList{}: "",
	} {
		events, err := w.Watch(ctx, list, client.InNamespace(in))
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for event := range events.ResultChan() {
				_, volume := event.Object.(*v1alpha1.Volume)
				if event.Type == watch.Modified || event.Type == watch.Added && volume {
					seen <- struct{}{}
				}
			}
		}()
	}
	return seen
}

func drain(writes <-chan struct{}) {
	for len(writes) > 0 {
		<-writes
	}
}

// after waits for so many writes, or until there are none.
func after(t *testing.T, writes <-chan struct{}, count int) bool {
	t.Helper()
	for range count {
		select {
		case <-writes:
		case <-time.After(quiet):
			return false
		case <-t.Context().Done():
			t.Fatal("interrupted")
		}
	}
	return true
}
