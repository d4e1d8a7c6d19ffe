//go:build platform

package zfs_test

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/blockdev/blockdevtest"
	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/provision/zfs/zfstest"
	"berth.dev/berth/internal/run"
)

// ZFS has no old data to show where nothing was written.
func TestNoVolumeShowsDataOfAnotherOnRealZFS(t *testing.T) {
	zfstest.RealZpool(t, "tank", blockdevtest.Disks(t, 1)[0])
	conformance.RunForgets(t, realHarness)
}

func TestRealZFSKeepsVolumesAsTheirClassSays(t *testing.T) {
	zfstest.RealZpool(t, "tank", blockdevtest.Disks(t, 1)[0])
	pool := zfstest.RealPool(t, parent)
	zfstest.Run(t, "zfs", "set", "compression=gzip", parent)
	c, _, _ := zfstest.RealConfig(t)
	p, _ := start(t, c)
	for _, step := range []struct {
		id      string
		source  provision.Source
		options provision.Tuning
		want    string // blocks, compression
	}{
		{"pvc-1", provision.Source{}, provision.Tuning{}, "16384\ngzip"},
		{"pvc-2", provision.Source{}, provision.Tuning{BlockSize: 8 << 10, Compression: "zstd-fast-1000"}, "8192\nzstd-fast-1000"},
		{"pvc-3", provision.Source{}, provision.Tuning{BlockSize: 128 << 10, Compression: "lz4"}, "131072\nlz4"},
		{"pvc-4", provision.Source{Volume: "pvc-3"}, provision.Tuning{BlockSize: 16 << 10, Compression: "zstd-19"}, "131072\nzstd-19"},
	} {
		r := provision.CreateRequest{ID: step.id, Pool: pool, Size: 64 << 20, Source: step.source, Tuning: step.options}
		if _, err := p.Create(t.Context(), r); err != nil {
			t.Fatalf("%s: %v", step.id, err)
		}
		if got := zfstest.Run(t, "zfs", "get", "-Hp", "-o", "value", "volblocksize,compression", volumes+step.id); got != step.want {
			t.Errorf("%s is kept as %q, want %q", step.id, got, step.want)
		}
	}
	for _, compression := range []string{"on", "off", "zle", "lzjb", "gzip-1", "gzip-9", "zstd", "zstd-1", "zstd-fast", "zstd-fast-10", "zstd-fast-100"} {
		r := provision.CreateRequest{ID: "pvc-" + compression, Pool: pool, Size: 8 << 20, Tuning: provision.Tuning{Compression: compression}}
		if _, err := p.Create(t.Context(), r); err != nil {
			t.Errorf("what is taken, ZFS refuses: %v", err)
		}
	}
}

// As docs/zfs.md recommends.
func TestAPoolCanHideThePartitionsOfItsVolumesOnRealZFS(t *testing.T) {
	zfstest.RealZpool(t, "tank", blockdevtest.Disks(t, 1)[0])
	pool := zfstest.RealPool(t, parent)
	zfstest.Run(t, "zfs", "set", "volmode=dev", parent)
	c, _, _ := zfstest.RealConfig(t)
	p, _ := start(t, c)
	for id, source := range map[string]provision.Source{"pvc-1": {}, "pvc-2": {Volume: "pvc-1"}} {
		v, err := p.Create(t.Context(), provision.CreateRequest{ID: "pvc-1", Pool: pool, Size: 64 << 20})
		if err == nil {
			blockdevtest.WriteAt(t, v.Content.Source, partitionTable(), 0)
			v, err = p.Create(t.Context(), provision.CreateRequest{ID: id, Pool: pool, Size: 64 << 20, Source: source})
		}
		if err != nil {
			t.Fatal(err)
		}
		// The kernel may refuse to look for partitions at all.
		_, _ = run.Exec{}.Change(run.Command{Operation: "rereadpt", Program: "blockdev", Args: []string{"--rereadpt", v.Content.Source}})
		zfstest.Run(t, "udevadm", "settle")
		node, err := filepath.EvalSymlinks(v.Content.Source)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := filepath.Glob("/sys/block/" + filepath.Base(node) + "/*/partition"); err != nil || len(got) > 0 {
			t.Errorf("%s shows %v, %v", id, got, err)
		}
		if _, err := os.Stat(node + "p1"); err == nil {
			t.Errorf("%sp1 is there", node)
		}
	}
}

// partitionTable is a master boot record with one partition of a megabyte.
func partitionTable() string {
	var sector [512]byte
	entry := sector[446:]
	entry[4] = 0x83
	binary.LittleEndian.PutUint32(entry[8:], 2048)
	binary.LittleEndian.PutUint32(entry[12:], 2048)
	sector[510], sector[511] = 0x55, 0xaa
	return string(sector[:])
}
