//go:build platform

package zfs_test

import (
	"testing"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/provision/zfs/zfstest"
)

// ZFS has nothing else to show where nothing was written.
func TestNoVolumeShowsWhatAnotherHeldOnRealZFS(t *testing.T) {
	zfstest.RealZpool(t, "tank", zfstest.Disks(t, 1)[0])
	conformance.RunForgets(t, realHarness)
}

func TestRealZFSKeepsVolumesAsTheirClassSays(t *testing.T) {
	zfstest.RealZpool(t, "tank", zfstest.Disks(t, 1)[0])
	pool := zfstest.RealPool(t, parent)
	zfstest.Run(t, "zfs", "set", "compression=gzip", parent)
	c, _, _ := zfstest.RealConfig(t)
	p, _ := start(t, c)
	for _, step := range []struct {
		id      string
		source  provision.Source
		options provision.ZFSOptions
		want    string // blocks, compression, what the kernel shows of it
	}{
		{"pvc-1", provision.Source{}, provision.ZFSOptions{}, "16384\ngzip\ndev"},
		{"pvc-2", provision.Source{}, provision.ZFSOptions{BlockSize: 8 << 10, Compression: "zstd-fast-1000"}, "8192\nzstd-fast-1000\ndev"},
		{"pvc-3", provision.Source{}, provision.ZFSOptions{BlockSize: 128 << 10, Compression: "lz4"}, "131072\nlz4\ndev"},
		{"pvc-4", provision.Source{Volume: "pvc-3"}, provision.ZFSOptions{BlockSize: 16 << 10, Compression: "zstd-19"}, "131072\nzstd-19\ndev"},
	} {
		r := provision.CreateRequest{ID: step.id, Pool: pool, Size: 64 << 20, Source: step.source, ZFS: step.options}
		if _, err := p.Create(t.Context(), r); err != nil {
			t.Fatalf("%s: %v", step.id, err)
		}
		if got := zfstest.Run(t, "zfs", "get", "-Hp", "-o", "value", "volblocksize,compression,volmode", parent+"/"+step.id); got != step.want {
			t.Errorf("%s is kept as %q, want %q", step.id, got, step.want)
		}
	}
	for _, compression := range []string{"on", "off", "zle", "lzjb", "gzip-1", "gzip-9", "zstd", "zstd-1", "zstd-fast", "zstd-fast-10", "zstd-fast-100"} {
		r := provision.CreateRequest{ID: "pvc-" + compression, Pool: pool, Size: 8 << 20, ZFS: provision.ZFSOptions{Compression: compression}}
		if _, err := p.Create(t.Context(), r); err != nil {
			t.Errorf("what is taken, ZFS refuses: %v", err)
		}
	}
}
