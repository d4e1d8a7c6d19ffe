//go:build platform

package guesttest

import (
	"encoding/binary"
	"os"
	"strconv"
	"strings"
	"testing"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/blockdev/faultydisk"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
)

// The layout of the first block of a thin pool's metadata, which the kernel writes. Sizes and
// offsets are in bytes.
const (
	thinBlock = 4096
	thinMagic = 27022010
	magicAt   = 32
	// indexAt is where the number of the block is that leads to the space map of the metadata. The
	// space map tells which blocks of the metadata are in use.
	indexAt = 208
)

func TestAThinPoolWhoseMetadataIsDamagedIsRepairedOnRealLVM(t *testing.T) {
	newDisk(t, lvmtest.Disks(t, 1)[0], 128*mib)
	group := lvmtest.RealGroup(t, groupName, diskPath)
	ref := lvmtest.RealThinPool(t, group.Name, "pool", 64*mib)
	p, _ := started(t)
	v := made(t, p, request(ref, "pvc-kept", 8))
	put(t, v.Content.Source, v.Size, secret)
	table := strings.Fields(faultydisk.Dmsetup(t, "table", "vg--berth-pool_tmeta"))
	sector, err := strconv.ParseInt(table[len(table)-1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	lvmtest.LVM(t, "vgchange", "--activate", "n", groupName)
	damage(t, sector*faultydisk.SectorSize)

	refusedBy := func() string {
		v, err := p.Get(t.Context(), "pvc-kept")
		if err != nil {
			t.Fatal(err)
		}
		return v.Problem
	}
	if problem := refusedBy(); !strings.Contains(problem, "cannot be activated") {
		t.Errorf("the volume has the problem %q", problem)
	}
	problem := pool(t, p, ref).Problem
	t.Logf("reported: %s", problem)
	lvmtest.LVM(t, append(strings.Fields(between(t, problem, "repair it: ", ")")), "--yes")...)
	if problem := refusedBy(); problem != "" {
		t.Errorf("after the repair the volume has the problem %q", problem)
	}
	eventually(t, p, ref, func(p provision.Pool) bool { return sound(p) && p.Fill.Data > 0 }, "the pool does not work")
	holds(t, v.Content.Source, v.Size, secret)
	made(t, p, request(ref, "pvc-new", 4))
	emptied(t, p, ref, "pool", "pool_meta0") // LVM's name for the metadata before the repair
}

// damage destroys the space map of a pool's metadata, which begins at this offset of the disk.
// The mappings to the volumes' data stay, so that a repair can restore everything.
func damage(t *testing.T, at int64) {
	t.Helper()
	f, err := os.OpenFile(diskPath, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	faultydisk.Settled(t, f) // the kernel wrote past the page cache of the disk
	first := make([]byte, thinBlock)
	if _, err := f.ReadAt(first, at); err != nil {
		t.Fatal(err)
	}
	index := int64(binary.LittleEndian.Uint64(first[indexAt:])) //nolint:gosec // a small number, or a failure
	if magic := binary.LittleEndian.Uint64(first[magicAt:]); magic != thinMagic || index < 1 || index > 1024 {
		t.Fatalf("there is no metadata at %d: %x", at, first[:256])
	}
	if _, err := f.WriteAt(make([]byte, thinBlock), at+index*thinBlock); err != nil {
		t.Fatal(err)
	}
	faultydisk.Settled(t, f)
}
