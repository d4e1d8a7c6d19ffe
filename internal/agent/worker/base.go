package worker

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/orphans"
	"berth.dev/berth/internal/decide/entries"
	"berth.dev/berth/internal/decide/orphan"
	"berth.dev/berth/internal/provision"
)

const (
	// StepTimeout bounds each call of the provisioner and each wait for a lock, so that
	// a hanging pool cannot hold a worker. The provisioner finishes a step that has begun;
	// the next try finds its outcome.
	StepTimeout = time.Minute
	// StaleDelay lets the watch catch up after a lost compare-and-swap.
	StaleDelay = 20 * time.Millisecond
	// RefusedDelay is how long a refused step waits when nothing changes.
	RefusedDelay = time.Minute
)

// Locks locks volumes and snapshots by id. The workers share the locks with the CSI node
// service.
type Locks interface {
	Lock(ctx context.Context, key string) (unlock func(), err error)
}

// Base is the node of a worker: its locks, its report of the pools, and the work it hands on.
type Base struct {
	Node  string
	Locks Locks
	// Refused is called when a step found no room. It must not block.
	Refused func()
	// ToolFailed is called when the provisioner failed for no specific reason, so that the
	// pools are read again. It must not block.
	ToolFailed func()
	// Listed says whether the latest report of the pools may have data of that id.
	Listed func(id string) bool
	// Deleted is called after data was deleted, which the latest report still shows.
	Deleted func(id string)
	// Format is called for a replica that is ready and still blank. It must not block.
	Format func(r provision.FormatRequest)
	// Pool returns a pool as the latest report has it, or only its name if the report lacks
	// it.
	Pool func(ref provision.PoolRef) provision.Pool
	// Reported says whether the latest report of the pools has read the pool with that name:
	// then data that it lacks is not there. It fails before the first report.
	Reported func(pool string) (bool, error)
	// Waived says whether an administrator has given up data that is lost with its pool.
	Waived func(ctx context.Context, l orphan.Lost) (bool, error)
	// Orphans collects data that no object accounts for.
	Orphans *orphans.Set
	// Word says whether an orphan may be deleted.
	Word func(ctx context.Context, r orphan.Record) (orphan.Answer, error)

	// begun maps the names of objects to their uids. An object is in it if this process saw
	// that the node had nothing of it before it began to make its data, until an entry says that
	// the data is there. A restart loses the map: data is then kept instead of removed.
	begun sync.Map
}

// Lock waits for a lock, for as long as a step may take.
func (b *Base) Lock(ctx context.Context, id string) (unlock func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, StepTimeout)
	defer cancel()
	return b.Locks.Lock(ctx, id)
}

// Class reads a PoolClass. One that does not exist is entries.ErrNoClass.
func Class(ctx context.Context, get func(ctx context.Context, name string) (*v1alpha1.PoolClass, error), name string) (*v1alpha1.PoolClass, error) {
	class, err := get(ctx, name)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("%w: PoolClass %s does not exist", entries.ErrNoClass, name)
	}
	if err != nil {
		return nil, fmt.Errorf("reading PoolClass %s: %w", name, err)
	}
	return class, nil
}
