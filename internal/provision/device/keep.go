package device

import (
	"context"
	"io"
	"sync"
	"time"
)

// keeps holds the partitions of volumes open, by pool.
//
// Whenever a writer closes a disk, udev makes the kernel forget its partitions and find
// them again, so that a node may vanish just when it is mounted. The kernel does not do
// that while a partition is open, so the provisioner has the partitions of volumes open for
// reading. That hinders no mount. The provisioner closes a partition before it matters
// whether other processes have it open.
//
// Opening a partition may hang, as on a disk that does not answer. So the lock is not held
// meanwhile, and one opening at a time is under way for each pool.
type keeps struct {
	mu      sync.Mutex
	open    map[string]keep
	opening map[string]*opening
}

type keep struct {
	path string
	io.Closer
}

// opening is an open(2) that is under way.
type opening struct {
	path string
	// ended is closed when it is over.
	ended chan struct{}
	// unwanted says that the partition is to be closed as soon as it is open.
	unwanted bool
}

// keep holds a volume's partition open. It does not matter here if the partition cannot be
// opened: its user will see that. The error is errNoAnswer, or the cause of the context's end.
func (r *reader) keep(ctx context.Context, pool, path string) error {
	late := time.NewTimer(readTimeout)
	defer late.Stop()
	for {
		o, mine := r.keeps.begin(pool, path)
		if o == nil {
			return nil
		}
		if mine {
			go func() {
				opened, err := r.config.Disks.Keep(path)
				r.keeps.end(pool, o, opened, err)
			}()
		}
		select {
		case <-o.ended:
		case <-late.C:
			return errNoAnswer
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if mine {
			return nil
		}
	}
}

// begin returns the opening that is under way, or a new one that the caller has to do; nil
// if the path is held open already.
func (k *keeps) begin(pool, path string) (o *opening, mine bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if o := k.opening[pool]; o != nil {
		return o, false
	}
	if old, kept := k.open[pool]; kept {
		if old.path == path {
			return nil, false
		}
		delete(k.open, pool)
		go old.Close()
	}
	if k.opening == nil {
		k.open, k.opening = map[string]keep{}, map[string]*opening{}
	}
	o = &opening{ended: make(chan struct{}), path: path}
	k.opening[pool] = o
	return o, true
}

// end takes in the result of an opening.
func (k *keeps) end(pool string, o *opening, opened io.Closer, err error) {
	defer close(o.ended)
	k.mu.Lock()
	delete(k.opening, pool)
	unwanted := o.unwanted
	if err == nil && !unwanted {
		k.open[pool] = keep{o.path, opened}
	}
	k.mu.Unlock()
	if err == nil && unwanted {
		opened.Close()
	}
}

// letGo closes the kept partitions of all pools for which unless is false. Closing one may
// hang, as opening it may. gone is closed when all of them are closed.
func (r *reader) letGo(unless func(pool string) bool) (gone <-chan struct{}) {
	r.keeps.mu.Lock()
	defer r.keeps.mu.Unlock()
	var closing sync.WaitGroup
	for pool, k := range r.keeps.open {
		if !unless(pool) {
			delete(r.keeps.open, pool)
			closing.Go(func() { k.Close() })
		}
	}
	for pool, o := range r.keeps.opening {
		if !unless(pool) {
			o.unwanted = true
			closing.Go(func() { <-o.ended })
		}
	}
	closed := make(chan struct{})
	go func() {
		closing.Wait()
		close(closed)
	}()
	return closed
}
