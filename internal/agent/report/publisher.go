package report

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/pools"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/signal"
)

const (
	// interval is the least time between two writes of one object.
	interval = time.Second
	// maxRetry bounds the growing wait after a failure.
	maxRetry = 5 * time.Second
)

// Cluster is the API server as the publisher uses it.
type Cluster interface {
	// Facts are read from watches.
	Facts(ctx context.Context) (Facts, error)
	// StorageNode returns the status as it is; nil if there is no such object.
	StorageNode(ctx context.Context) (*v1alpha1.StorageNode, error)
	// ApplyStorageNode writes the status, creating the object if need be, and
	// returns its UID. It leaves the summary as it is.
	ApplyStorageNode(ctx context.Context, status v1alpha1.StorageNodeStatus) (types.UID, error)
	// ApplySummary writes the summary of the status, which people see in lists; nil removes it.
	ApplySummary(ctx context.Context, s *v1alpha1.StorageNodeSummary) error
	// ListCapacities returns the names of this node's capacity objects.
	ListCapacities(ctx context.Context) ([]string, error)
	// ApplyCapacity writes one, owned by the StorageNode with that UID.
	ApplyCapacity(ctx context.Context, c storagev1.CSIStorageCapacity, owner types.UID) error
	// DeleteCapacity deletes one; one that is gone is no error.
	DeleteCapacity(ctx context.Context, name string) error
}

// Publisher keeps the StorageNode and the capacities of one node up to date. It writes
// only objects that differ from those it wrote last; Forget tells it that another writer
// changed them.
type Publisher struct {
	// Driver whose room is published. The caller sets it before Start.
	Driver driver.Driver
	// OrphanRetention is how long orphans are kept; 0 is for ever. The caller sets it before
	// Start.
	OrphanRetention time.Duration

	node, namespace string
	cluster         Cluster
	latest          func() pools.Latest
	clock           clock.Clock
	log             logr.Logger
	poked           signal.Signal
	forget          signal.Signal

	// Used by Start alone.
	uid      types.UID
	status   *v1alpha1.StorageNodeStatus
	summary  *v1alpha1.StorageNodeSummary // as it was written, or tried, if summed
	summed   bool
	capacity map[string]storagev1.CSIStorageCapacity
	listed   bool
}

// New returns a publisher that works once Start is called.
func New(node, namespace string, cluster Cluster, latest func() pools.Latest, c clock.Clock, log logr.Logger) *Publisher {
	return &Publisher{
		node: node, namespace: namespace, cluster: cluster, latest: latest, clock: c, log: log,
		poked: signal.New(), forget: signal.New(),
	}
}

// Poke says that something may have changed. It never blocks.
func (p *Publisher) Poke() { p.poked.Set() }

// Forget says that another writer may have changed the published objects. The publisher
// then writes all of them again.
func (p *Publisher) Forget() {
	p.forget.Set()
	p.Poke()
}

// Start publishes until the context ends: at once, and then at each poke, but
// not more often than once an interval.
func (p *Publisher) Start(ctx context.Context) error {
	p.Forget()
	wait := interval
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-p.poked:
		}
		timer := p.clock.NewTimer(wait)
		if err := p.publish(ctx); err != nil && ctx.Err() == nil {
			p.log.Error(err, "publishing what the node has failed, trying again")
			wait = min(2*wait, maxRetry)
			p.Poke()
		} else {
			wait = interval
		}
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C():
		}
	}
}

func (p *Publisher) publish(ctx context.Context) error {
	select {
	case <-p.forget:
		p.status, p.summed, p.capacity, p.listed = nil, false, map[string]storagev1.CSIStorageCapacity{}, false
	default:
	}
	facts, err := p.cluster.Facts(ctx)
	if err != nil {
		return err
	}
	if facts.Node == nil {
		return nil // the controller removes the objects of a Node that is gone
	}
	snapshot := p.latest()
	// The status first: it creates the StorageNode, which owns the capacities.
	status := Describe(facts, snapshot)
	if err := p.publishStatus(ctx, status, facts.Owed); err != nil {
		return err
	}
	if err := p.publishCapacities(ctx, Capacities(p.Driver, facts, snapshot, p.node, p.namespace)); err != nil {
		return err
	}
	p.publishSummary(ctx, status.Summary)
	return nil
}

// publishSummary comes last and fails nothing: no decision rests on the summary, and an API server
// whose definition is older refuses it. The next one that differs is tried again.
func (p *Publisher) publishSummary(ctx context.Context, next *v1alpha1.StorageNodeSummary) {
	if p.summed && equality.Semantic.DeepEqual(p.summary, next) {
		return
	}
	p.summary, p.summed = next, true
	if err := p.cluster.ApplySummary(ctx, next); err != nil {
		p.log.Info("the summary of the node could not be written: are the CustomResourceDefinitions older than the agent?", "problem", err.Error())
	}
}

func (p *Publisher) publishStatus(ctx context.Context, next v1alpha1.StorageNodeStatus, owed string) error {
	var before v1alpha1.StorageNodeStatus
	if p.status != nil {
		before = *p.status
	} else if old, err := p.cluster.StorageNode(ctx); err != nil {
		return err
	} else if old != nil {
		before = old.Status
	}
	now := p.clock.Now()
	next.Conditions = timed(before.Conditions, next.Conditions, now)
	next.Pools = changed(before.Pools, dated(before.Pools, next.Pools, p.OrphanRetention, now))
	if p.status != nil && !news(*p.status, next, owed) {
		return nil
	}
	uid, err := p.cluster.ApplyStorageNode(ctx, next)
	if err != nil {
		return err
	}
	p.uid, p.status = uid, &next
	return nil
}

// news says whether a report has to be written. A newer revision alone is no reason: the
// watch comes further with every change of every volume.
func news(old, next v1alpha1.StorageNodeStatus, owed string) bool {
	if before(old.VolumesRevision, owed) && before(old.VolumesRevision, next.VolumesRevision) {
		return true
	}
	next.VolumesRevision = old.VolumesRevision
	return !equality.Semantic.DeepEqual(old, next)
}

func (p *Publisher) publishCapacities(ctx context.Context, want []storagev1.CSIStorageCapacity) error {
	if err := p.deleteOthers(ctx, want); err != nil {
		return err
	}
	for _, c := range want {
		if old, ok := p.capacity[c.Name]; ok && equality.Semantic.DeepEqual(old, c) {
			continue
		}
		if err := p.cluster.ApplyCapacity(ctx, c, p.uid); err != nil {
			return err
		}
		p.capacity[c.Name] = c
	}
	return nil
}

// deleteOthers deletes this node's capacities of classes that it does not serve.
func (p *Publisher) deleteOthers(ctx context.Context, want []storagev1.CSIStorageCapacity) error {
	others := map[string]bool{}
	for name := range p.capacity {
		others[name] = true
	}
	if !p.listed {
		names, err := p.cluster.ListCapacities(ctx)
		if err != nil {
			return err
		}
		for _, name := range names {
			others[name] = true
		}
	}
	for _, c := range want {
		delete(others, c.Name)
	}
	for name := range others {
		if err := p.cluster.DeleteCapacity(ctx, name); err != nil {
			return err
		}
		delete(p.capacity, name)
	}
	p.listed = true
	return nil
}

// timed gives conditions the time of their last transition.
func timed(before, next []metav1.Condition, now time.Time) []metav1.Condition {
	for i := range next {
		next[i].LastTransitionTime = metav1.NewTime(now.Truncate(time.Second))
		if old := meta.FindStatusCondition(before, next[i].Type); old != nil && old.Status == next[i].Status {
			next[i].LastTransitionTime = old.LastTransitionTime
		}
	}
	return next
}
