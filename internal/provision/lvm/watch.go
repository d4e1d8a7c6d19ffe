package lvm

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"berth.dev/berth/internal/provision/engine"
	"berth.dev/berth/internal/provision/lvm/group"
)

// watcher notices changes by others, and starts the chores.
type watcher struct {
	*changer
	chores []*chores
	// checks are the groups that are about to be checked, and strangers devices that may have
	// become physical volumes.
	checks    checks
	strangers strangers
}

// Run watches for changes by others, fills copies of thick volumes and wipes deleted volumes,
// until ctx ends; then it waits for the changes under way. Without Run only own changes are
// signalled, copies are not filled, and deleted volumes that must be wiped keep their room.
func (p *Provisioner) Run(ctx context.Context) error {
	defer p.Wait()
	work, ctx := errgroup.WithContext(ctx)
	work.Go(func() error {
		return p.config.Devices.Watch(ctx, p.watcher.watching, func(device string) { p.watcher.written(ctx, device) })
	})
	work.Go(func() error {
		p.watcher.tick(ctx)
		return nil
	})
	work.Go(func() error {
		p.watchFill(ctx)
		return nil
	})
	for _, c := range p.watcher.chores {
		work.Go(func() error {
			c.attend(ctx, p.reader)
			return nil
		})
	}
	return work.Wait()
}

// watching is called when no change escapes notice any more. A change between an earlier report
// and this call may have escaped.
func (p *watcher) watching() {
	p.engine.Lock()
	p.state.watched = true
	p.engine.Unlock()
	p.state.staleAll()
	p.engine.Changed.Set()
}

// tick reads everything again every refreshInterval, in case a change escaped notice. Every
// retryInterval it asks again for groups that are silent, missing or refused, mends leftovers, and
// tries to activate thin pools again: a disk may work again without any event.
func (p *watcher) tick(ctx context.Context) {
	refresh := time.NewTicker(refreshInterval)
	defer refresh.Stop()
	retry := time.NewTicker(retryInterval)
	defer retry.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-refresh.C:
			_ = p.learnHost(ctx) // if it fails the known settings stay valid
			p.state.staleAll()
			p.engine.Changed.Set()
		case <-retry.C:
			if p.state.some(func(g *group.Facts) bool { return !g.Changeable() }) {
				p.state.staleAll()
				p.engine.Changed.Set()
			}
			if silent := p.engine.Silent(); len(silent) > 0 {
				p.refreshEach(ctx, silent)
				p.engine.Changed.Set()
			}
			p.mend(ctx)
			p.rouseRefused(ctx)
		}
	}
}

// checks remembers the groups that are about to be checked, so that a writer that
// closes a device many times causes one check.
type checks struct {
	mu      sync.Mutex
	pending map[string]bool
}

func (c *checks) begin(group string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pending[group] {
		return false
	}
	if c.pending == nil {
		c.pending = map[string]bool{}
	}
	c.pending[group] = true
	return true
}

func (c *checks) has(group string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pending[group]
}

func (c *checks) end(group string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pending, group)
}

// written is called when a writer has closed a device, or when a device came or went.
func (p *watcher) written(ctx context.Context, device string) {
	if p.state.some(func(g *group.Facts) bool { return g.Refused != "" }) { // the device may be the reason why a group is refused
		p.state.staleAll()
		p.engine.Changed.Set()
		return
	}
	for name, devices := range p.state.devices() {
		for _, d := range devices {
			if p.config.Devices.Same(d, device) {
				if p.checks.begin(name) {
					p.engine.Tasks.Go(func() { p.check(ctx, name, device) })
				}
				return
			}
		}
	}
	p.strangers.look(device, func() {
		// Not known as a physical volume; it may have become one.
		if _, err := p.config.Devices.Sequence(device); err == nil {
			p.state.staleAll()
			p.engine.Changed.Set()
		}
	})
}

// strangers are devices that are being looked at and need not be physical volumes. A device that
// does not answer holds up no other, and Wait does not wait for it.
type strangers struct {
	mu sync.Mutex
	// again says, by device, whether it was written to since the look at it began.
	again map[string]bool
}

// look calls read for a device in the background, and once more if a read of the device is
// running.
func (s *strangers) look(device string, read func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, looking := s.again[device]; looking {
		s.again[device] = true
		return
	}
	if s.again == nil {
		s.again = map[string]bool{}
	}
	s.again[device] = false
	go func() {
		for more := true; more; more = s.more(device) {
			read()
		}
	}()
}

func (s *strangers) more(device string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.again[device] {
		s.again[device] = false
		return true
	}
	delete(s.again, device)
	return false
}

// check compares the group's number on the disk with the known one. It waits for an own change
// under way, which updates the known number at its end and so does not look like a change by
// others.
func (p *watcher) check(ctx context.Context, name, device string) {
	unlock, err := p.engine.UnitLocks.Lock(ctx, name)
	p.checks.end(name) // before the disk is read: a later write is checked again
	if err != nil {
		return
	}
	defer unlock()
	seqno, err := p.number(ctx, device)
	if ctx.Err() != nil {
		return
	}
	changed := false
	p.engine.With(name, func(g *group.Facts) {
		if err == nil && g != nil && g.Seqno != seqno {
			p.engine.Touch(g)
			changed = true
		}
	})
	if err != nil { // the device went, does not answer, or is no physical volume any more
		p.state.staleAll()
		changed = true
	}
	if changed {
		p.engine.Changed.Set()
	}
}

// number returns the group's number on a physical volume. It leaves the read behind if the device
// does not answer within queryTimeout, as ask does with LVM, and does not read the device again
// until it has answered.
func (p *reader) number(ctx context.Context, device string) (uint64, error) {
	if !p.readings.begin(device) {
		return 0, engine.ErrNoAnswer
	}
	ctx, cancel := context.WithTimeoutCause(ctx, queryTimeout, engine.ErrNoAnswer)
	defer cancel()
	type answer struct {
		seqno uint64
		err   error
	}
	read := make(chan answer, 1)
	go func() {
		seqno, err := p.config.Devices.Sequence(device)
		p.readings.end(device) // before the waiting caller can ask again
		read <- answer{seqno, err}
	}()
	select {
	case a := <-read:
		return a.seqno, a.err
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}
