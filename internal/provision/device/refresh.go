package device

import (
	"context"
	"errors"
	"fmt"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/reading"
)

var errNoAnswer = errors.New("it does not answer")

// list asks the kernel for its disks, and returns whether anything is new.
func (r *reader) list() (changed bool, err error) {
	r.looks.Lock()
	defer r.looks.Unlock()
	disks, err := r.config.Disks.List()
	if err != nil {
		return false, fmt.Errorf("%w: listing disks: %w", provision.ErrUnavailable, err)
	}
	changed = r.state.apply(disks)
	r.letGo(r.state.has) // an open partition of a disk that went would keep its name from the next disk
	return changed, nil
}

// refresh asks the kernel for its disks and reads those that may have been written.
// It does not wait any longer for a disk that does not answer in time.
func (r *reader) refresh(ctx context.Context) error {
	if _, err := r.list(); err != nil {
		return err
	}
	timer := time.NewTimer(readTimeout)
	defer timer.Stop()
	for pool, done := range r.beginReading() {
		select {
		case <-done:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
			timer.Reset(0) // the others had as long
			r.state.With(pool, func(d *disk) {
				if d != nil && d.reading == done {
					d.unreadable = errNoAnswer
				}
			})
		}
	}
	r.nudge()
	return nil
}

// beginReading starts to read every disk that may have been written, all at the same
// time, and returns channels that are closed when the readings end, by pool. It leaves
// out a disk that an own change works on: that change reads the disk at its end.
func (r *reader) beginReading() map[string]chan struct{} {
	r.state.Lock()
	defer r.state.Unlock()
	under := map[string]chan struct{}{}
	for pool, d := range r.state.Units() {
		if d.reading == nil && d.Mark.Due() && !d.changing && !d.missing {
			d.reading = make(chan struct{})
			of, turn, asked, done := d.Disk, d.turn, r.state.Moment(), d.reading
			// The process does not wait for this at its end: a disk that hangs would keep it alive.
			go r.read(pool, of, turn, asked, done)
		}
		// A caller does not wait again for a disk that did not answer the last time.
		if d.reading != nil && !errors.Is(d.unreadable, errNoAnswer) {
			under[pool] = d.reading
		}
	}
	return under
}

// read reads one disk and notes its content, unless it was changed meanwhile.
func (r *reader) read(pool string, of Disk, turn int, asked reading.Moment, done chan struct{}) {
	defer close(done)
	c, err := r.lookAt(of)
	again := false
	r.state.With(pool, func(d *disk) {
		if d == nil || d.reading != done {
			return
		}
		again = errors.Is(d.unreadable, errNoAnswer) // no caller waits for this any more
		d.reading = nil
		if d.turn == turn && d.same(of) {
			d.learn(asked, r.config.Now(), c, err)
		}
	})
	if again {
		r.changed.Set()
	}
}

// learn takes in the result of a reading that began at a moment, and ended now.
func (d *disk) learn(asked reading.Moment, now time.Time, c content, err error) {
	d.Mark.Read(asked)
	if d.unreadable = err; err == nil {
		d.content, d.Read = c, now
	}
}

// lookAt reads a disk, and makes sure that it is the disk that is meant.
func (r *reader) lookAt(d Disk) (content, error) {
	opened, err := r.config.Disks.Read(d.Name)
	if err != nil {
		return content{}, err
	}
	defer opened.Close()
	if now, ok := r.config.Disks.Find(d.Name); !ok || !now.same(d) {
		return content{}, errors.New("another disk has its name now")
	}
	return look(opened, d.Geometry)
}
