//go:build platform

package faults

import (
	"strings"
	"testing"

	"berth.dev/berth/internal/provision/blockdev/blockdevtest"
	"berth.dev/berth/internal/provision/blockdev/faultydisk"
	"berth.dev/berth/internal/provision/blockdev/faultydisk/writelog"
	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/provision/zfs/zfstest"
)

// powerDisk is how large the disk is, which is written anew for each failure. In a smaller one
// a life has no room: ZFS keeps half of it for itself.
const powerDisk = 128 * mib

func TestThePowerMayFailAtEveryMomentOfVolumesOnRealZFS(t *testing.T) {
	zfstest.Run(t, "modprobe", "zfs")
	backings := blockdevtest.Disks(t, 2)
	d := faultydisk.New(t, diskName, backings[0], powerDisk)
	entries := record(t, d, backings[1])
	all := moments(entries, powerDisk)
	some := chosen(all, makes, conformance.Rounds(t))
	var found parts
	d.FailAt(some, entries, func(t *testing.T, step int) { found.add(goOn(t, step)) })
	t.Logf("at %d of %d moments at which the power fails, there are %d volumes without a record, and %d without their room", len(some), len(all), found.unrecorded, found.unreserved)
	if !t.Failed() && found.unrecorded == 0 {
		t.Error("no moment is in the middle of making a volume")
	}
}

// record writes down what a life writes to the disk. Nobody has the disk keep what was
// answered: that is what an answer says.
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

// goOn has a new provisioner live on from where the power failed, and says what was there in
// parts.
func goOn(t *testing.T, step int) parts {
	n := boot(t, "import", "-f", "-N", "-o", "cachefile=none", "-d", diskPath, zpool)
	found := look(t)
	n.start()
	n.check(step)
	for s := step; s < lived; s++ {
		zfstest.Run(t, "udevadm", "settle")
		life[s](n)
		n.check(s + 1)
	}
	n.emptied()
	n.end()
	return found
}

// parts are how many volumes are there in parts: without their record, or without their room.
type parts struct{ unrecorded, unreserved int }

func (p *parts) add(more parts) {
	p.unrecorded += more.unrecorded
	p.unreserved += more.unreserved
}

// look looks for volumes that are there in parts, before anybody can do something about it.
func look(t *testing.T) (found parts) {
	t.Helper()
	for line := range strings.Lines(zfstest.Run(t, "zfs", "list", "-H", "-p", "-r", "-o", "name,berth.dev:volume,refreservation", zpool)) {
		fields := strings.Fields(line)
		if !strings.HasPrefix(fields[0], volumes) {
			continue
		}
		switch {
		case fields[1] == "-":
			found.unrecorded++
			t.Logf("%s has no record, and %s bytes of room", fields[0], fields[2])
		case fields[2] == "0":
			found.unreserved++
			t.Logf("%s has no room", fields[0])
		}
	}
	return found
}
