package keep

import (
	"context"
	"fmt"
	"slices"
	"time"

	"berth.dev/berth/internal/guard"
	"berth.dev/berth/internal/ownership"
)

const (
	// renewal is how long one attempt to renew may take: no longer than the time between two.
	renewal = guard.RenewOpen
	// asking is how long the peers have to answer, all of them together.
	asking = 1500 * time.Millisecond
	// mostSets is how many sets of storage nodes may be named without an answer to any renewal. More
	// would need an API server that answers each list and loses the answer to each write.
	mostSets = 8
)

// renew begins an attempt. Only the time when it was sent counts: the server may take it at any
// time after that.
func (k *Keeper) renew(ctx context.Context, now time.Duration) {
	k.tried, k.renewing = now, true
	promises := k.c.Watchdog.Promises()
	k.promised = k.promised || promises
	go func() {
		ctx, cancel := context.WithTimeout(ctx, renewal)
		defer cancel()
		var sent []string
		err := k.c.Lease.Renew(ctx, func(members []string) (guard.Renewal, error) {
			sent = slices.Clone(members)
			return k.says(sent, promises)
		})
		k.mu.Lock()
		defer k.mu.Unlock()
		k.renewing = false
		if err != nil {
			k.c.Log.Error(err, "renewing the node's lease failed")
			return
		}
		k.state.Renewed, k.state.Sets, k.promised = now, [][]string{sent}, promises
		if err := k.c.Store.Save(k.state); err != nil {
			k.c.Log.Error(err, "a guard that follows this one does not know of this renewal")
		}
		k.poke()
	}()
}

// says returns what a renewal says that names these nodes. From now on the node counts over them, too:
// the server may store the renewal although its answer is lost.
func (k *Keeper) says(members []string, watchdog bool) (guard.Renewal, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if known := func(set []string) bool { return slices.Equal(set, members) }; !slices.ContainsFunc(k.state.Sets, known) {
		if len(k.state.Sets) >= mostSets {
			return guard.Renewal{}, fmt.Errorf("the storage nodes have changed %d times since a renewal was answered", mostSets)
		}
		next := k.state
		next.Sets = append(slices.Clone(next.Sets), members)
		if err := k.save(next); err != nil {
			return guard.Renewal{}, err
		}
	}
	f := k.facts()
	return guard.Renewal{Sent: f.Now, Silent: f.Now - f.Renewed, Watchdog: watchdog}, nil
}

// ask begins to ask the peers whether they are without the API, too. Only the time when they were asked
// counts: each may have had an answer a moment after its own.
func (k *Keeper) ask(ctx context.Context, f *guard.Facts) {
	nodes := slices.Concat(f.Sets...)
	slices.Sort(nodes)
	nodes = slices.DeleteFunc(slices.Compact(nodes), func(n string) bool { return n == k.c.Node })
	k.asking = true
	go func() {
		ctx, cancel := context.WithTimeout(ctx, asking)
		defer cancel()
		peers := k.c.Peers.Contacts(ctx, nodes)
		k.mu.Lock()
		defer k.mu.Unlock()
		k.asking = false
		alike, away := ownership.APIIsAway(&ownership.Contact{Sets: k.state.Sets, Peers: peers})
		if !away || k.state.Fenced {
			return
		}
		next := k.state
		next.Exempted, next.Alike = f.Now, alike
		if err := k.save(next); err != nil {
			k.c.Log.Error(err, "the peers are without the API, too, and that could not be kept")
			return
		}
		k.poke()
	}()
}
