//go:build platform

package faults

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/provision/lvm"
	"berth.dev/berth/internal/provision/lvm/faults/writelog"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
)

// life is what becomes of some volumes, in steps that can be done again. A power failure
// comes in the middle of one: those before it were answered.
type life struct {
	// prepare makes the pool.
	prepare func(t *testing.T) provision.PoolRef
	steps   []func(t *testing.T, p *lvm.Provisioner)
	// check fails unless all is there that was promised by the steps before one, and
	// nothing that they took away.
	check func(t *testing.T, p *lvm.Provisioner, step int)
	// remains are the logical volumes that are there when all is deleted.
	remains []string
}

// powerDisk is how large the disk is: it is written anew for each failure.
const powerDisk = 64 * mib

func TestThePowerMayFailAtEveryWriteOfThickVolumesOnRealLVM(t *testing.T) {
	powerFails(t, thickLife())
}

// powerFails lives through a life once, and then goes on with it from every write that the
// disk had completed when the power failed, or from as many as there are to be rounds.
func powerFails(t *testing.T, l life) {
	backings := lvmtest.Disks(t, 2)
	d := newDisk(t, backings[0], powerDisk)
	ref, entries := record(t, d, backings[1], l)
	moments := chosen(failures(entries), conformance.Rounds(t))
	t.Logf("%d of %d moments at which the power fails", len(moments), len(failures(entries)))
	image := make([]byte, powerDisk)
	next := 0
	for _, m := range moments {
		for ; next < m.entry; next++ {
			if err := entries[next].Apply(image); err != nil {
				t.Fatal(err)
			}
		}
		if !t.Run(fmt.Sprintf("write %d, in step %d", m.entry, m.step), func(t *testing.T) { goOn(t, l, ref, m.step, image) }) {
			return // the disk may be in any state
		}
	}
}

// record writes down what a life writes to the disk, and leaves the disk empty.
func record(t *testing.T, d *disk, log string, l life) (provision.PoolRef, []writelog.Entry) {
	t.Helper()
	zero(t, log, mib)
	d.remove()
	d.create(d.logs(log))
	ref := l.prepare(t)
	p, stop := started(t)
	for n, step := range l.steps {
		reach(t, n)
		step(t, p)
	}
	reach(t, len(l.steps))
	stop()
	lvmtest.LVM(t, "vgchange", "--activate", "n", groupName)
	d.remove() // which ends the log
	d.create(d.works())
	f, err := os.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	settled(t, f)
	entries, err := writelog.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	return ref, entries
}

// reach sets a mark in the log: all before it is on the disk, and a step begins.
func reach(t *testing.T, step int) {
	t.Helper()
	f, err := os.OpenFile(diskPath, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := tell(diskName, "mark "+mark+strconv.Itoa(step)); err != nil {
		t.Fatal(err)
	}
}

const mark = "step-"

// moment is one at which the power fails: before an entry, in a step.
type moment struct{ entry, step int }

// failures are all moments, one before each write, from the first step on.
func failures(entries []writelog.Entry) (all []moment) {
	step := -1
	for n, e := range entries {
		if text, found := strings.CutPrefix(e.Mark, mark); found {
			step, _ = strconv.Atoi(text)
		}
		if step >= 0 && (e.Writes() || n == len(entries)-1) {
			all = append(all, moment{n, step})
		}
	}
	return all
}

// chosen are so many of the moments, or all, spread over them.
func chosen(all []moment, most int) (some []moment) {
	for n := range min(most, len(all)) {
		some = append(some, all[(n*(len(all)-1))/max(min(most, len(all))-1, 1)])
	}
	return slices.Compact(some)
}

// goOn makes the disk what it was when the power failed, and has a new provisioner live on
// from there.
func goOn(t *testing.T, l life, ref provision.PoolRef, step int, image []byte) {
	write(t, diskPath, image)
	p, stop := started(t)
	if got := pool(t, p, ref); got.Problem != "" || got.PoolRef != ref {
		t.Errorf("the pool is reported as %+v", got)
	}
	l.check(t, p, step)
	for n := step; n < len(l.steps); n++ {
		l.steps[n](t, p)
		l.check(t, p, n+1)
	}
	emptied(t, p, ref, l.remains...)
	stop()
	lvmtest.LVM(t, "vgchange", "--activate", "n", groupName)
	if left := devices(t, 99); len(left) > 0 {
		t.Errorf("devices %v are left", left)
	}
}
