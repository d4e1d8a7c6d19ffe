package schedule

import (
	"context"
	"fmt"
	"sync"

	"berth.dev/berth/internal/ledger"
)

// Book is the ledger behind a lock. Its methods may be called concurrently. Their
// results never change.
type Book struct {
	mu     sync.RWMutex
	ledger *ledger.Ledger
	synced chan struct{}
}

// NewBook returns an empty Book that is not synced.
func NewBook() *Book {
	return &Book{ledger: ledger.New(), synced: make(chan struct{})}
}

// Request works demands out; see ledger.Ledger.
func (b *Book) Request(options ledger.RequestOptions, demands ...ledger.Demand) (*ledger.Request, ledger.Verdict) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.ledger.Request(options, demands...)
}

// Node returns a node as it is now, or nil, which answers NotReported.
func (b *Book) Node(name string) *ledger.Node {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.ledger.Node(name)
}

// NodeNames lists the known nodes in order.
func (b *Book) NodeNames() []string {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.ledger.NodeNames()
}

// Reserve sets room aside for all demands of a request on a node, or for none.
func (b *Book) Reserve(node string, r *ledger.Request) ([]ledger.Choice, ledger.Verdict) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ledger.Reserve(node, r)
}

// Unreserve gives back what the pod holds on the node.
func (b *Book) Unreserve(podUID, node string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ledger.Unreserve(podUID, node)
}

// Held returns the pool in which room is held for an owner on a node.
func (b *Book) Held(o ledger.Owner, node string) (pool string, held bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.ledger.Held(o, node)
}

// Orphan returns the node and pool that list data of an owner without an object.
func (b *Book) Orphan(o ledger.Owner) (node, pool string, found bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.ledger.Orphan(o)
}

// Grant sets room aside for a Volume to grow, or returns the obstacle.
func (b *Book) Grant(volume string, bytes int64) ledger.Obstacle {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ledger.Grant(volume, bytes)
}

// Room of a class on a node.
func (b *Book) Room(node, class string) ledger.Room {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.ledger.Room(node, class)
}

// Pools lists the pools of a node with their charges.
func (b *Book) Pools(node string) []ledger.PoolState {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.ledger.Pools(node)
}

// Synced reports whether every kind of object was listed once.
func (b *Book) Synced() bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.ledger.Synced()
}

// WaitSynced waits until the Book is synced.
func (b *Book) WaitSynced(ctx context.Context) error {
	select {
	case <-b.synced:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for the ledger to be synced: %w", context.Cause(ctx))
	}
}

func (b *Book) setSynced() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.ledger.Synced() {
		b.ledger.SetSynced()
		close(b.synced)
	}
}

// holdsFor reports whether the ledger knows a pod: by its inline volumes, or by room
// that is held for it.
func (b *Book) holdsFor(podUID string) bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.ledger.KnowsPod(podUID)
}

// change changes the ledger.
func (b *Book) change(change func(*ledger.Ledger)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(b.ledger)
}
