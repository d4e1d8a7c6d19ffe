package peer

import (
	"context"
	"net/url"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"berth.dev/berth/internal/ownership"
)

const (
	// broken is after how long without a beat a stream counts as broken.
	broken = 3 * Beat
	// overdue is after how long without a beat others are asked: early enough that those who do not get an
	// answer themselves have said so when the stream counts as broken.
	overdue = broken - askWithin
	// witnesses is how many nodes are asked at most about one that sends no beats.
	witnesses = 8
	// recent is how old the answers to probes may be: they are sent each second, and may take probeWithin.
	recent = probeWithin + broken
)

// Beats are the streams of one controller from the storage nodes.
type Beats struct {
	// Name of this controller as a witness.
	Name   string
	Client *Client
	// Guards asks the guards of nodes, which answer while the agent is replaced; nil if there are none.
	Guards *Client
	Clock  clock.WithTicker
	// Stirred, if set, is called when what is known of a node whose beats do not come may have changed.
	Stirred func()

	mu     sync.Mutex
	heard  map[string]time.Time // the latest beats
	vouch  map[string]time.Time // the latest answers of guards, by when they were asked
	follow map[string]context.CancelFunc
	// said has what other nodes last said about a node that sends no beats.
	said map[string]said
}

// said are answers to probes that were sent at a time.
type said struct {
	at    time.Time
	votes []ownership.Witness
}

// Follow holds one stream open from each of these nodes, and from no other, until ctx ends or it is called
// again. A stream that breaks is begun anew after a second.
func (b *Beats) Follow(ctx context.Context, nodes []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.follow == nil {
		b.heard, b.vouch = map[string]time.Time{}, map[string]time.Time{}
		b.follow, b.said = map[string]context.CancelFunc{}, map[string]said{}
	}
	for node, stop := range b.follow {
		if !slices.Contains(nodes, node) {
			stop()
			delete(b.follow, node)
			delete(b.heard, node)
			delete(b.vouch, node)
			delete(b.said, node)
		}
	}
	for _, node := range nodes {
		if b.follow[node] == nil {
			own, stop := context.WithCancel(ctx)
			b.follow[node] = stop
			go b.hear(own, node)
			go b.doubt(own, node)
		}
	}
}

func (b *Beats) hear(ctx context.Context, node string) {
	ticker := b.Clock.NewTicker(Beat)
	defer ticker.Stop()
	for ctx.Err() == nil {
		b.stream(ctx, node)
		select {
		case <-ctx.Done():
		case <-ticker.C():
		}
	}
}

// stream follows one stream until it breaks or is silent for too long.
func (b *Beats) stream(ctx context.Context, node string) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	silence := b.Clock.NewTimer(broken)
	defer silence.Stop()
	beats := make(chan struct{})
	go func() {
		defer close(beats)
		_ = b.Client.beats(ctx, node, func() {
			select {
			case beats <- struct{}{}:
			case <-ctx.Done():
			}
		})
	}()
	for {
		select {
		case _, goesOn := <-beats:
			if !goesOn {
				return
			}
			silence.Reset(broken)
			b.mu.Lock()
			if ctx.Err() == nil {
				b.heard[node] = b.Clock.Now()
			}
			b.mu.Unlock()
		case <-silence.C():
			cancel()
			for range beats { // until the stream has ended
			}
			return
		}
	}
}

// Alive tells whether a node's beats come, or its guard answers in their place.
func (b *Beats) Alive(node string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.fresh(b.heard, node) || b.fresh(b.vouch, node)
}

// fresh is called with the lock.
func (b *Beats) fresh(signs map[string]time.Time, node string) bool {
	return b.Clock.Since(signs[node]) < broken // the zero time is long ago
}

// quiet is for how long no beat of a node has come.
func (b *Beats) quiet(node string) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Clock.Since(b.heard[node])
}

// doubt asks a node's guard, and others about the node, each second while its beats are overdue. An agent that
// is being replaced sends none, and its pods are well.
func (b *Beats) doubt(ctx context.Context, node string) {
	wake := b.Clock.NewTimer(overdue)
	defer wake.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-wake.C():
		}
		at, quiet := b.Clock.Now(), b.quiet(node)
		if quiet >= overdue {
			b.stir(node)
			b.ask(ctx, node)
			b.stir(node)
		}
		wake.Reset(pause(quiet) - b.Clock.Since(at)) // at once, if the answers took longer
	}
}

// pause is when to look again at a node whose beats have not come for a while: when they are overdue, when the
// stream counts as broken, and each second after that.
func pause(quiet time.Duration) time.Duration {
	switch {
	case quiet < overdue:
		return overdue - quiet
	case quiet < broken:
		return broken - quiet
	}
	return Beat
}

func (b *Beats) stir(node string) {
	if b.Stirred != nil && !b.Alive(node) {
		b.Stirred()
	}
}

// ask asks a node's guard, and others about the node, side by side.
func (b *Beats) ask(ctx context.Context, node string) {
	at := b.Clock.Now()
	var asks sync.WaitGroup
	asks.Go(func() { b.askGuard(ctx, node, at) })
	votes := b.probe(ctx, node)
	b.mu.Lock()
	if ctx.Err() == nil {
		b.said[node] = said{at, votes}
	}
	b.mu.Unlock()
	asks.Wait()
}

// Ask asks nodes for their copies of a volume, as Client.Ask does, but none whose beats have ceased: it would be
// waited for in vain at each step of a failover. A node that has not been heard of yet is asked.
func (b *Beats) Ask(ctx context.Context, volume string, nodes []string) []ownership.Peer {
	return b.Client.Ask(ctx, volume, slices.DeleteFunc(slices.Clone(nodes), b.ceased))
}

func (b *Beats) ceased(node string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, heard := b.heard[node]
	return heard && !b.fresh(b.heard, node)
}

// askGuard notes at once that the guard answers: other nodes may take longer, and the answer would be old.
func (b *Beats) askGuard(ctx context.Context, node string, at time.Time) {
	if b.Guards == nil || !b.Guards.Alive(ctx, node) {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if ctx.Err() == nil {
		b.vouch[node] = at
	}
}

// probe asks up to eight nodes whose beats come whether they reach another.
func (b *Beats) probe(ctx context.Context, suspect string) []ownership.Witness {
	return each(ctx, b.Client, probeWithin, b.others(suspect), func(ctx context.Context, node string) (ownership.Witness, error) {
		var a probe
		err := b.Client.get(ctx, node, pathProbe, url.Values{"node": {suspect}}, &a)
		return ownership.Witness{Name: node, Alive: a.Alive}, err
	})
}

// Witnesses returns who can and who cannot reach a node: this controller by its own stream and, only if
// that is broken, up to eight nodes whose beats come. A witness that does not answer is not listed. About a
// node that is followed, what others said last is known, and nothing waits for an answer: a failover asks
// several times.
func (b *Beats) Witnesses(ctx context.Context, suspect string) []ownership.Witness {
	own := ownership.Witness{Name: b.Name, Alive: b.Alive(suspect)}
	if own.Alive {
		return []ownership.Witness{own}
	}
	b.mu.Lock()
	_, followed := b.follow[suspect]
	last := b.said[suspect]
	b.mu.Unlock()
	switch {
	case !followed:
		last.votes = b.probe(ctx, suspect)
	case b.Clock.Since(last.at) > recent:
		last.votes = nil
	}
	return append([]ownership.Witness{own}, last.votes...)
}

// others are nodes whose beats come: those that follow the suspect by name, so that not all suspects are
// asked about through the same ones.
func (b *Beats) others(suspect string) (out []string) {
	b.mu.Lock()
	for node, at := range b.heard {
		if node != suspect && b.Clock.Since(at) < broken {
			out = append(out, node)
		}
	}
	b.mu.Unlock()
	slices.Sort(out)
	from, _ := slices.BinarySearch(out, suspect)
	out = slices.Concat(out[from:], out[:from])
	return out[:min(len(out), witnesses)]
}
