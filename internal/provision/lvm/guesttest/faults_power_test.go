//go:build platform

package guesttest

import (
	"testing"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/blockdev/faultydisk"
	"berth.dev/berth/internal/provision/blockdev/faultydisk/writelog"
	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/provision/lvm"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
)

// life is a sequence of idempotent steps on some volumes. The power fails in the middle of a
// step. The provisioner has answered the steps before it.
type life struct {
	// prepare makes the pool.
	prepare func(t *testing.T) provision.PoolRef
	steps   []func(t *testing.T, p *lvm.Provisioner)
	// check fails unless everything is there that the steps before this one promised, and
	// nothing that they removed.
	check func(t *testing.T, p *lvm.Provisioner, step int)
	// remains are the logical volumes that are there when all is deleted.
	remains []string
}

// powerDisk is the size of the disk in bytes. The tests write the disk anew for each failure.
const powerDisk = 64 * mib

func TestThePowerMayFailAtEveryWriteOfThickVolumesOnRealLVM(t *testing.T) {
	powerFails(t, thickLife())
}

// powerFails runs a life once. Then it lets the power fail at every write of the life, or at as
// many writes as there are to be rounds, and goes on with the life from there.
func powerFails(t *testing.T, l life) {
	backings := lvmtest.Disks(t, 2)
	d := newDisk(t, backings[0], powerDisk)
	ref, entries := record(t, d, backings[1], l)
	all := faultydisk.EachWrite(entries)
	moments := faultydisk.Spread(all, conformance.Rounds(t))
	t.Logf("%d of %d moments at which the power fails", len(moments), len(all))
	d.FailAt(moments, entries, func(t *testing.T, step int) { goOn(t, l, ref, step) })
}

// record runs a life and records its writes to the disk. All writes before a mark are durable.
func record(t *testing.T, d *faultydisk.Disk, log string, l life) (ref provision.PoolRef, entries []writelog.Entry) {
	t.Helper()
	reach := func(step int) {
		d.Keep()
		d.Reach(step)
	}
	entries = d.Record(log, func() {
		ref = l.prepare(t)
		p, stop := started(t)
		for n, step := range l.steps {
			reach(n)
			step(t, p)
		}
		reach(len(l.steps))
		stop()
		lvmtest.LVM(t, "vgchange", "--activate", "n", groupName)
		freed(t)
	})
	return ref, entries
}

// goOn lets a new provisioner go on with the life from the step in which the power failed.
func goOn(t *testing.T, l life, ref provision.PoolRef, step int) {
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
