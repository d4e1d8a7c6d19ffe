//go:build platform

package guesttest

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"berth.dev/berth/internal/provision/blockdev/blockdevtest"
	"berth.dev/berth/internal/provision/blockdev/faultydisk"
	"berth.dev/berth/internal/provision/blockdev/faultydisk/writelog"
	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/provision/zfs/zfstest"
)

// powerDisk is the size in bytes of the disk, which is written anew for each failure. A life has
// no room on a smaller one: ZFS keeps half of it for itself.
const powerDisk = 128 * mib

func TestThePowerMayFailAtEveryMomentOfVolumesOnRealZFS(t *testing.T) {
	zfstest.Run(t, "modprobe", "zfs")
	backings := blockdevtest.Disks(t, 2)
	d := faultydisk.New(t, diskName, backings[0], powerDisk)
	entries := record(t, d, backings[1])
	all := moments(entries, powerDisk)
	some := chosen(all, slices.Concat(makes, grows), conformance.Rounds(t))
	var found parts
	d.FailAt(some, entries, func(t *testing.T, step int) { found.add(goOn(t, step)) })
	t.Logf("at %d of %d moments at which the power fails, there are %d volumes without a record, and %d without their room", found.looks, len(all), found.unrecorded, found.unreserved)
	if !t.Failed() && found.unrecorded == 0 {
		t.Error("no moment is in the middle of making a volume")
	}
}

// record logs the writes of a life to the disk. It does not sync the disk after a step: an
// answer must mean that its effect is on the disk.
func record(t *testing.T, d *faultydisk.Disk, log string) []writelog.Entry {
	t.Helper()
	return d.Record(log, func() {
		n := boot(t, "create", "-f", "-o", "cachefile=none", "-O", "mountpoint=none", zpool, diskPath)
		n.start()
		for step, do := range life {
			zfstest.Run(t, "udevadm", "settle")
			d.Reach(step)
			do(n)
		}
		d.Reach(lived)
		n.end()
	})
}

// goOn has a new provisioner continue the life at the step in which the power failed. It returns
// how many volumes were there in parts.
func goOn(t *testing.T, step int) parts {
	n := boot(t, "import", "-f", "-N", "-o", "cachefile=none", "-d", diskPath, zpool)
	found := look(t)
	n.start()
	n.check(step)
	if !slices.Contains(slices.Concat(makes, grows), step) {
		n.reserved()
	}
	for s := step; s < lived; s++ {
		zfstest.Run(t, "udevadm", "settle")
		life[s](n)
		n.check(s + 1)
		n.reserved()
	}
	n.emptied()
	n.end()
	return found
}

// parts says how many volumes were there in parts, without their record or without their room,
// in so many looks.
type parts struct{ looks, unrecorded, unreserved int }

func (p *parts) add(more parts) {
	p.looks += more.looks
	p.unrecorded += more.unrecorded
	p.unreserved += more.unreserved
}

// look looks for volumes that are there in parts, before a provisioner can complete them.
func look(t *testing.T) (found parts) {
	t.Helper()
	found.looks = 1
	for _, r := range rows(t) {
		switch {
		case r.record == "-":
			found.unrecorded++
			t.Logf("%s has no record, and room for %d bytes", r.name, r.room)
		case r.room < r.size:
			found.unreserved++
			t.Logf("%s has room for %d bytes of %d", r.name, r.room, r.size)
		}
	}
	return found
}

// row is ZFS's report of a volume, or of a part of one.
type row struct {
	name, record string
	size, room   int64
}

func rows(t *testing.T) (all []row) {
	t.Helper()
	out := zfstest.Run(t, "zfs", "list", "-H", "-p", "-r", "-o", "name,berth.dev:volume,volsize,refquota,refreservation", zpool)
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		r := row{name: fields[0], record: fields[1]}
		if !strings.HasPrefix(r.name, volumes) {
			continue
		}
		for i, to := range map[int]*int64{2: &r.size, 3: &r.size, 4: &r.room} {
			if fields[i] == "-" {
				continue // a zvol has no quota, and a dataset no other size
			}
			n, err := strconv.ParseInt(fields[i], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			*to = n
		}
		all = append(all, r)
	}
	return all
}
