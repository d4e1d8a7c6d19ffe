package device

import (
	"context"
	"errors"
	"fmt"
	"time"

	"berth.dev/berth/internal/provision"
)

var errNoAnswer = errors.New("it does not answer")

// list asks the kernel for its disks, and returns whether anything is new.
func (p *Provisioner) list() (changed bool, err error) {
	p.looks.Lock()
	defer p.looks.Unlock()
	disks, err := p.config.Disks.List()
	if err != nil {
		return false, fmt.Errorf("%w: listing disks: %w", provision.ErrUnavailable, err)
	}
	changed = p.state.apply(disks)
	p.letGo(p.state.has) // an open partition of a disk that went would keep its name from the next
	return changed, nil
}

// refresh asks the kernel for its disks and reads those that may have been written.
// A disk that does not answer in time is left to itself.
func (p *Provisioner) refresh(ctx context.Context) error {
	if _, err := p.list(); err != nil {
		return err
	}
	timer := time.NewTimer(p.config.ReadTimeout)
	defer timer.Stop()
	for pool, done := range p.beginReading() {
		select {
		case <-done:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
			timer.Reset(0) // the others had as long
			p.state.with(pool, func(d *disk) {
				if d != nil && d.reading == done {
					d.unreadable = errNoAnswer
				}
			})
		}
	}
	p.nudge()
	return nil
}

// beginReading starts to read every disk that may have been written, all at the same
// time, and returns what ends the readings, by pool. A disk that an own change is at
// work on is left to that.
func (p *Provisioner) beginReading() map[string]chan struct{} {
	p.state.mu.Lock()
	defer p.state.mu.Unlock()
	under := map[string]chan struct{}{}
	for pool, d := range p.state.disks {
		if d.reading == nil && d.stale && !d.changing && !d.missing {
			d.stale, d.reading = false, make(chan struct{})
			of, turn, done := d.Disk, d.turn, d.reading
			// Nobody waits for this in the end: a disk that hangs would keep the process.
			go p.read(pool, of, turn, done)
		}
		// A disk that did not answer the last time holds up nobody again.
		if d.reading != nil && !errors.Is(d.unreadable, errNoAnswer) {
			under[pool] = d.reading
		}
	}
	return under
}

// read reads one disk and notes what is on it, unless it was changed meanwhile.
func (p *Provisioner) read(pool string, of Disk, turn int, done chan struct{}) {
	defer close(done)
	c, err := p.lookAt(of)
	again := false
	p.state.with(pool, func(d *disk) {
		if d == nil || d.reading != done {
			return
		}
		again = errors.Is(d.unreadable, errNoAnswer) // nobody waits for this any more
		d.reading = nil
		switch {
		case d.turn != turn:
		case !d.same(of):
			d.stale = true
		default:
			d.learn(c, err)
		}
	})
	if again {
		p.signal()
	}
}

// learn takes over what was read.
func (d *disk) learn(c content, err error) {
	if d.unreadable = err; err == nil {
		d.content, d.read = c, true
	}
}

// lookAt reads a disk, and makes sure that it is the disk that is meant.
func (p *Provisioner) lookAt(d Disk) (content, error) {
	r, err := p.config.Disks.Read(d.Name)
	if err != nil {
		return content{}, err
	}
	defer r.Close()
	if now, ok := p.config.Disks.Find(d.Name); !ok || !now.same(d) {
		return content{}, errors.New("another disk has its name now")
	}
	return look(r, d.Geometry)
}
