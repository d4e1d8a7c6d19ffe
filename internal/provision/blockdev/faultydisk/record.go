//go:build platform

package faultydisk

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"berth.dev/berth/internal/provision/blockdev/faultydisk/writelog"
)

// logHead is where a log says how long it is.
const logHead = 1 << 20

// Record writes down what a life writes to the disk, on another disk. It begins on an empty
// disk, and ends with no process that uses it.
func (d *Disk) Record(log string, live func()) []writelog.Entry {
	d.t.Helper()
	zero(d.t, log, logHead)
	d.remove()
	d.create(d.logs(log))
	live()
	d.remove() // which ends the log
	d.create(d.Works())
	f, err := os.Open(log)
	if err != nil {
		d.t.Fatal(err)
	}
	defer f.Close()
	Settled(d.t, f)
	entries, err := writelog.Read(f)
	if err != nil {
		d.t.Fatal(err)
	}
	return entries
}

// Reach sets a mark in the log: a step begins. What the disk had completed and not been told
// to keep is behind the mark.
func (d *Disk) Reach(step int) {
	d.t.Helper()
	if err := Tell(d.name, "mark "+mark+strconv.Itoa(step)); err != nil {
		d.t.Fatal(err)
	}
}

// Keep has the disk keep all that it was told to write before a mark.
func (d *Disk) Keep() {
	d.t.Helper()
	f, err := os.OpenFile(d.Path(), os.O_RDWR, 0)
	if err != nil {
		d.t.Fatal(err)
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		d.t.Fatal(err)
	}
}

// FailAt makes the disk what it was at one moment after the other, and has a new life go on
// from there.
func (d *Disk) FailAt(moments []Moment, entries []writelog.Entry, goOn func(t *testing.T, step int)) {
	image := make([]byte, d.size)
	next := 0
	for _, m := range moments {
		for ; next < m.Entry; next++ {
			if err := entries[next].Apply(image); err != nil {
				d.t.Fatal(err)
			}
		}
		tried := d.t.Run(fmt.Sprintf("write %d, in step %d", m.Entry, m.Step), func(t *testing.T) {
			write(t, d.Path(), image)
			goOn(t, m.Step)
		})
		if !tried {
			return // the disk may be in any state
		}
	}
}
