//go:build platform

package guesttest

import (
	"slices"
	"testing"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/blockdev/blockdevtest"
	"berth.dev/berth/internal/provision/blockdev/faultydisk"
	"berth.dev/berth/internal/provision/blockdev/faultydisk/writelog"
	"berth.dev/berth/internal/provision/zfs/zfstest"
)

// Data that was written durably may be only in ZFS's intent log, which a dataset's next mount
// replays. To copy a dataset that was not mounted since, Berth must replay the log itself.
func TestACopyAfterAPowerFailureHasAllDurableDataOnRealZFS(t *testing.T) {
	zfstest.Run(t, "modprobe", "zfs")
	backings := blockdevtest.Disks(t, 2)
	d := faultydisk.New(t, diskName, backings[0], powerDisk)
	const idle, answered = 0, 1
	entries := d.Record(backings[1], func() {
		n := boot(t, "create", "-f", "-o", "cachefile=none", "-O", "mountpoint=none", zpool, diskPath)
		n.start()
		n.make(zvolID, 4, "", provision.Source{})
		n.make(filesID, 4, provision.Dataset, provision.Source{})
		n.use(filesID)
		n.put(zvolID, before) // the first time there is no intent log, and ZFS writes it out
		n.put(filesID, before)
		zfstest.Run(t, "zpool", "sync", zpool)
		d.Reach(idle)
		n.put(zvolID, behind)
		n.put(filesID, behind)
		d.Reach(answered)
		n.end()
	})
	at := slices.IndexFunc(entries, func(e writelog.Entry) bool { return e.Mark == "step-1" })
	d.FailAt([]faultydisk.Moment{{Entry: at, Step: answered}}, entries, func(t *testing.T, _ int) {
		n := boot(t, "import", "-f", "-N", "-o", "cachefile=none", "-d", diskPath, zpool)
		n.start()
		for of, filesystem := range map[string]string{zvolID: "", filesID: provision.Dataset} {
			n.take("snap-"+of, of)
			n.make(of+"-restored", 4, filesystem, provision.Source{Snapshot: "snap-" + of})
			n.make(of+"-cloned", 4, filesystem, provision.Source{Volume: of})
			for _, id := range []string{of + "-restored", of + "-cloned", of} {
				n.holds(*n.find(id), 4*mib, behind)
			}
		}
	})
}
