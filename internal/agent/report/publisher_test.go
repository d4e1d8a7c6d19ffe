package report

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/pools"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/provision"
)

// cluster records the writes and their times.
type cluster struct {
	mu         sync.Mutex
	facts      Facts
	pool       provision.Pool
	node       *v1alpha1.StorageNode
	capacities map[string]string // name -> capacity
	writes     map[string][]time.Time
	err        error
	// old says that the installed definition has no summary.
	old     bool
	summary *v1alpha1.StorageNodeSummary
}

func (c *cluster) do(what string, f func()) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	if what != "" {
		c.writes[what] = append(c.writes[what], time.Now())
	}
	f()
	return nil
}

func (c *cluster) Facts(context.Context) (f Facts, err error) {
	return f, c.do("", func() { f = c.facts })
}

func (c *cluster) StorageNode(context.Context) (n *v1alpha1.StorageNode, err error) {
	return n, c.do("", func() { n = c.node.DeepCopy() })
}

func (c *cluster) ApplyStorageNode(_ context.Context, s v1alpha1.StorageNodeStatus) (types.UID, error) {
	return "uid", c.do("node", func() { c.node = &v1alpha1.StorageNode{Status: s} })
}

func (c *cluster) ApplySummary(_ context.Context, s *v1alpha1.StorageNodeSummary) error {
	if c.old {
		return errors.New("the definition has no field summary")
	}
	return c.do("summary", func() { c.summary = s })
}

func (c *cluster) ListCapacities(context.Context) (names []string, err error) {
	return names, c.do("", func() {
		for name := range c.capacities {
			names = append(names, name)
		}
	})
}

func (c *cluster) ApplyCapacity(_ context.Context, s storagev1.CSIStorageCapacity, owner types.UID) error {
	if owner != "uid" {
		return fmt.Errorf("owner %q", owner)
	}
	return c.do(s.StorageClassName, func() { c.capacities[s.Name] = s.Capacity.String() })
}

func (c *cluster) DeleteCapacity(_ context.Context, name string) error {
	return c.do("delete", func() { delete(c.capacities, name) })
}

func (c *cluster) latest() pools.Latest {
	c.mu.Lock()
	defer c.mu.Unlock()
	return seen(c.pool)
}

// use changes the cluster as the test wants.
func (c *cluster) use(change func(*cluster)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(c)
}

func (c *cluster) capacity() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.capacities[capacityName("n1", "sc")]
}

func (c *cluster) count(what string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.writes[what])
}

// publishing runs a publisher of one pool and one class in a bubble of time,
// until the first publication is done.
func publishing(t *testing.T, prepare func(*cluster)) (*Publisher, *cluster) {
	t.Helper()
	c := &cluster{
		facts: facts([]v1alpha1.PoolClass{class("fast", []string{"vg0"})}, storage("sc", "fast")),
		pool:  pool("vg0"), capacities: map[string]string{}, writes: map[string][]time.Time{},
	}
	if prepare != nil {
		prepare(c)
	}
	p := New("n1", "berth-system", c, c.latest, clock.RealClock{}, logr.Discard())
	p.Driver = driver.Local()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = p.Start(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	synctest.Wait()
	return p, c
}

// pass lets time go by in the bubble.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestAChangeIsPublishedWithinASecondAndAtMostOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, c := publishing(t, nil)
		for range 100 { // a volume every 70 ms, for seven seconds
			c.use(func(c *cluster) { c.pool.Free -= 4 * mib })
			p.Poke()
			pass(70 * time.Millisecond)
		}
		pass(interval)
		want := quantity(10*gib - 400*mib)
		if c.capacity() != want.String() {
			t.Errorf("capacity %s; want %s", c.capacity(), want.String())
		}
		for what, times := range c.writes {
			for i := 1; i < len(times); i++ {
				if gap := times[i].Sub(times[i-1]); gap < interval {
					t.Errorf("%s was written twice within %s", what, gap)
				}
			}
		}
		if n := c.count("sc"); n < 7 || n > 9 {
			t.Errorf("%d writes in eight seconds", n)
		}
	})
}

func TestADefinitionWithoutSummaryHoldsNothingElseUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, c := publishing(t, func(c *cluster) { c.old = true })
		if c.capacity() != "10Gi" || c.count("node") != 1 {
			t.Errorf("capacity %q, %d reports", c.capacity(), c.count("node"))
		}
		c.use(func(c *cluster) { c.old, c.pool.Free = false, gib })
		p.Poke()
		pass(interval)
		if c.capacity() != "1Gi" || c.summary == nil {
			t.Errorf("capacity %q, summary %+v", c.capacity(), c.summary)
		}
	})
}

func TestASummaryIsWrittenOnceAndRemovedWithTheLastPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, c := publishing(t, nil)
		p.Poke()
		pass(interval)
		if c.summary == nil || c.count("summary") != 1 {
			t.Errorf("summary %+v, written %d times", c.summary, c.count("summary"))
		}
		p.publishSummary(t.Context(), nil)
		if c.summary != nil {
			t.Errorf("summary %+v", c.summary)
		}
	})
}

func TestAChangeAfterSilenceIsPublishedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, c := publishing(t, nil)
		pass(time.Minute)
		c.use(func(c *cluster) { c.pool.Free = gib })
		p.Poke()
		synctest.Wait()
		if c.capacity() != "1Gi" {
			t.Errorf("capacity %s", c.capacity())
		}
	})
}

func TestAnUnchangedReportIsNotWrittenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, c := publishing(t, nil)
		for range 10 {
			p.Poke()
			pass(interval)
		}
		if c.count("node") != 1 || c.count("sc") != 1 {
			t.Errorf("%d and %d writes; want 1 and 1", c.count("node"), c.count("sc"))
		}
	})
}

func TestAFailureIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := publishing(t, func(c *cluster) { c.err = errors.New("connection refused") })
		pass(time.Minute)
		c.use(func(c *cluster) { c.err = nil })
		pass(maxRetry)
		if c.capacity() != "10Gi" {
			t.Errorf("capacity %q after the API server came back", c.capacity())
		}
	})
}

func TestACapacityOfAClassThatIsGoneIsDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, c := publishing(t, func(c *cluster) { c.capacities["left-over"] = "1Gi" })
		if len(c.capacities) != 1 || c.capacity() == "" {
			t.Errorf("capacities %v; want the left-over one gone", c.capacities)
		}
		c.use(func(c *cluster) { c.facts.StorageClasses = nil })
		p.Poke()
		pass(interval)
		if len(c.capacities) != 0 {
			t.Errorf("capacities %v", c.capacities)
		}
	})
}

func TestAReportThatOthersChangedIsWrittenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, c := publishing(t, nil)
		c.use(func(c *cluster) { clear(c.capacities); c.node = nil })
		p.Forget()
		pass(interval)
		if c.capacity() != "10Gi" || c.node == nil {
			t.Errorf("capacity %q, node %v", c.capacity(), c.node)
		}
	})
}

func TestNothingIsPublishedForANodeThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := publishing(t, func(c *cluster) { c.facts.Node = nil })
		pass(time.Minute)
		if len(c.writes) != 0 {
			t.Errorf("writes %v", c.writes)
		}
	})
}

func TestAConditionKeepsTheTimeOfItsLastTransition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, c := publishing(t, nil)
		start := c.node.Status.Conditions[0].LastTransitionTime
		pass(time.Minute)
		c.use(func(c *cluster) { c.pool.Free = gib })
		p.Poke()
		synctest.Wait()
		if got := c.node.Status.Conditions[0].LastTransitionTime; !got.Equal(&start) {
			t.Errorf("transition at %s; want %s", got, start)
		}
	})
}
