package lvm

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// Run watches for changes by others, fills copies of thick volumes and wipes what deleted
// volumes left, until ctx ends; then it waits for the changes under way. Without it only
// own changes are signalled, what is to be copied is not, and what is to be wiped takes
// room.
func (p *Provisioner) Run(ctx context.Context) error {
	defer p.Wait()
	work, ctx := errgroup.WithContext(ctx)
	work.Go(func() error {
		return p.config.Devices.Watch(ctx, p.watching, func(device string) { p.written(ctx, device) })
	})
	work.Go(func() error {
		p.tick(ctx)
		return nil
	})
	work.Go(func() error {
		p.watchFill(ctx)
		return nil
	})
	for _, c := range []*chores{p.copies, p.wipes} {
		work.Go(func() error {
			p.attend(ctx, c)
			return nil
		})
	}
	return work.Wait()
}

// watching is told that from now on nothing escapes notice. What changed since an
// earlier report may have.
func (p *Provisioner) watching() {
	p.state.mu.Lock()
	p.state.watched = true
	p.state.mu.Unlock()
	p.state.staleAll()
	p.signal()
}

// tick reads everything again now and then, in case a change escaped notice, and
// asks for groups that were silent or refused more often, and mends what is left half done.
func (p *Provisioner) tick(ctx context.Context) {
	refresh := time.NewTicker(p.config.RefreshInterval)
	defer refresh.Stop()
	retry := time.NewTicker(p.config.QueryTimeout)
	defer retry.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-refresh.C:
			_ = p.learnHost(ctx) // what was known of it counts on
			p.state.staleAll()
			p.signal()
			p.rouseRefused(ctx)
		case <-retry.C:
			if p.state.refuses() {
				p.state.staleAll()
				p.signal()
			}
			if silent := p.state.silentNames(); len(silent) > 0 {
				p.refreshEach(ctx, silent)
				p.signal()
			}
			p.mend(ctx)
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

// written is told that somebody wrote to a device, or that it came or went.
func (p *Provisioner) written(ctx context.Context, device string) {
	if p.state.refuses() { // it may be what a group is refused for
		p.state.staleAll()
		p.signal()
		return
	}
	for name, devices := range p.state.devices() {
		for _, d := range devices {
			if p.config.Devices.Same(d, device) {
				if p.checks.begin(name) {
					p.tasks.Go(func() { p.check(ctx, name, device) })
				}
				return
			}
		}
	}
	p.strangers.look(device, func() {
		// Not known as a physical volume; it may have become one.
		if _, err := p.config.Devices.Sequence(device); err == nil {
			p.state.staleAll()
			p.signal()
		}
	})
}

// strangers are devices that are being looked at and may be anybody's: one that does not
// answer holds up nobody, and nobody waits for it in the end.
type strangers struct {
	mu sync.Mutex
	// again says that somebody wrote to one since looking at it began.
	again map[string]bool
}

// look has a device looked at, and once more if it is being looked at.
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

// check compares the group's number on the disk with the known one. It waits for an
// own change under way: that updates the known number at its end, and so does not
// look like somebody else's.
func (p *Provisioner) check(ctx context.Context, name, device string) {
	unlock, err := p.groups.Lock(ctx, name)
	p.checks.end(name) // before the disk is read: what is written later is checked again
	if err != nil {
		return
	}
	defer unlock()
	seqno, err := p.number(ctx, device)
	if ctx.Err() != nil {
		return
	}
	changed := false
	p.state.with(name, func(g *group) {
		if err == nil && g != nil && g.seqno != seqno {
			p.state.noticed(g)
			changed = true
		}
	})
	if err != nil { // the device went, does not answer, or is no physical volume any more
		p.state.staleAll()
		changed = true
	}
	if changed {
		p.signal()
	}
}

// number is the group's number on a physical volume. One that does not answer is left to itself,
// as LVM is when it reports, and not asked again until it has answered.
func (p *Provisioner) number(ctx context.Context, device string) (uint64, error) {
	if !p.readings.begin(device) {
		return 0, errNoAnswer
	}
	ctx, cancel := context.WithTimeoutCause(ctx, p.config.QueryTimeout, errNoAnswer)
	defer cancel()
	type answer struct {
		seqno uint64
		err   error
	}
	read := make(chan answer, 1)
	go func() {
		seqno, err := p.config.Devices.Sequence(device)
		p.readings.end(device) // before who waits can ask again
		read <- answer{seqno, err}
	}()
	select {
	case a := <-read:
		return a.seqno, a.err
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}
