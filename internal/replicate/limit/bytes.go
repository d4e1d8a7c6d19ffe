package limit

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Rates are limits in bytes per second; 0 is no limit.
type Rates struct {
	// Node limits all streams that leave this node.
	Node int64
	// Cluster is this node's share of the limit of all nodes; see Share.
	Cluster int64
}

// Share is one node's part of the cluster's limit, when so many nodes send. Nodes that do not send need
// none. A share is at least 1, because 0 would be no limit.
func Share(cluster int64, senders int) int64 {
	if cluster <= 0 {
		return 0
	}
	return max(1, cluster/int64(max(1, senders)))
}

// Limits are the limits of the streams that leave one node.
type Limits struct {
	node, cluster bucket
}

// NewLimits returns limits that hold nothing back until Set.
func NewLimits() *Limits {
	return &Limits{node: newBucket(), cluster: newBucket()}
}

// Set changes the rates. Streams that wait notice at once.
func (l *Limits) Set(r Rates) {
	l.node.set(r.Node)
	l.cluster.set(r.Cluster)
}

// Gate returns the gate of one volume's stream, with the volume's own limit in bytes per second.
func (l *Limits) Gate(volume int64) *Gate {
	g := &Gate{limits: l, volume: newBucket()}
	g.volume.set(volume)
	return g
}

// Gate holds one stream back.
type Gate struct {
	limits *Limits
	volume bucket
}

// Set changes the volume's limit. The stream notices at once.
func (g *Gate) Set(volume int64) { g.volume.set(volume) }

// Wait returns when n more bytes may leave. The volume's own limit comes first: a stream that it holds
// back must not take from the node's rate what others could use.
func (g *Gate) Wait(ctx context.Context, n int) error {
	for _, b := range []*bucket{&g.volume, &g.limits.node, &g.limits.cluster} {
		if err := b.wait(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// burst is how many bytes may leave at once after a rest. It is a frame, so that a large frame does not
// need more than the bucket ever has.
const burst = 256 << 10

// bucket is a token bucket whose rate may change while streams wait. rate.Limiter alone would let a
// stream that waits at an old, low rate wait to its end.
type bucket struct {
	limiter *rate.Limiter
	mu      *sync.Mutex
	// changed is closed when the rate changes.
	changed *chan struct{}
}

func newBucket() bucket {
	changed := make(chan struct{})
	return bucket{limiter: rate.NewLimiter(rate.Inf, burst), mu: new(sync.Mutex), changed: &changed}
}

func (b *bucket) set(bytes int64) {
	limit := rate.Inf
	if bytes > 0 {
		limit = rate.Limit(bytes)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.limiter.Limit() == limit {
		return
	}
	b.limiter.SetLimit(limit)
	close(*b.changed)
	*b.changed = make(chan struct{})
}

// wait takes n tokens, a burst at a time.
func (b *bucket) wait(ctx context.Context, n int) error {
	for n > 0 {
		part := min(n, burst)
		ok, err := b.take(ctx, part)
		if err != nil {
			return err
		}
		if ok {
			n -= part
		}
	}
	return nil
}

// take waits for tokens at the present rate. It takes none if the rate changes meanwhile.
func (b *bucket) take(ctx context.Context, n int) (ok bool, err error) {
	b.mu.Lock()
	changed := *b.changed
	r := b.limiter.ReserveN(time.Now(), n)
	b.mu.Unlock()
	timer := time.NewTimer(r.Delay())
	defer timer.Stop()
	select {
	case <-timer.C:
		return true, nil
	case <-changed:
		r.Cancel()
		return false, nil
	case <-ctx.Done():
		r.Cancel()
		return false, context.Cause(ctx)
	}
}
