package device

import (
	"context"
	"io"
	"sync"
	"time"
)

// keeps are the volumes' partitions that are held open, by pool.
//
// Whenever a writer closes a disk, udev makes the kernel forget its partitions and find
// them again, so that a node may vanish just when somebody mounts it. The kernel does not
// do that while a partition is open, so the provisioner has those of volumes open for
// reading. That hinders no mount, and is let go before it matters who else has them open.
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
	// unwanted says that what it opens is to be closed at once.
	unwanted bool
}

// keep holds a volume's partition open. What cannot be opened is no matter here: who
// needs it will see. The error is errNoAnswer, or the cause of the context's end.
func (p *Provisioner) keep(ctx context.Context, pool, path string) error {
	late := time.NewTimer(p.config.ReadTimeout)
	defer late.Stop()
	for {
		o, mine := p.keeps.begin(pool, path)
		if o == nil {
			return nil
		}
		if mine {
			go func() {
				opened, err := p.config.Disks.Keep(path)
				p.keeps.end(pool, o, opened, err)
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

// begin returns the opening that is under way, or one that is the caller's to do; nil if
// the path is held open already.
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

// end takes in what an opening came to.
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

// letGo closes the partitions that are kept and not among those to be kept further. Closing
// one may hang as opening it may; gone is closed when all of them are.
func (p *Provisioner) letGo(unless func(pool string) bool) (gone <-chan struct{}) {
	p.keeps.mu.Lock()
	defer p.keeps.mu.Unlock()
	var closing sync.WaitGroup
	for pool, k := range p.keeps.open {
		if !unless(pool) {
			delete(p.keeps.open, pool)
			closing.Go(func() { k.Close() })
		}
	}
	for pool, o := range p.keeps.opening {
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
