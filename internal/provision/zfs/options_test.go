package zfs_test

import (
	"testing"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/zfs/zfstest"
)

func TestAVolumeIsKeptAsItsClassSays(t *testing.T) {
	for name, tc := range map[string]struct {
		options     provision.Tuning
		block       int64
		compression string // its own; the pool's if empty
	}{
		"the defaults":                   {provision.Tuning{}, 16 << 10, ""},
		"a block size":                   {provision.Tuning{BlockSize: 64 << 10}, 64 << 10, ""},
		"a compression":                  {provision.Tuning{Compression: "zstd-3"}, 16 << 10, "zstd-3"},
		"a block size and a compression": {provision.Tuning{BlockSize: 8 << 10, Compression: "off"}, 8 << 10, "off"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost()
			p, _ := start(t, config(h))
			r := request("pvc-1", 8)
			r.Tuning = tc.options
			v, err := p.Create(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			h.On(v.Content.Source, func(d *zfstest.Dataset) {
				if d.Block != tc.block || d.Props["compression"] != tc.compression {
					t.Errorf("blocks of %d, compression %q", d.Block, d.Props["compression"])
				}
			})
		})
	}
}

func TestACopyHasItsSourcesBlocksAndItsOwnCompression(t *testing.T) {
	h := newHost()
	p, _ := start(t, config(h))
	r := request("pvc-1", 8)
	r.Tuning = provision.Tuning{BlockSize: 64 << 10, Compression: "lz4"}
	if _, err := p.Create(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	r = request("pvc-2", 8)
	r.Source.Volume = "pvc-1"
	r.Tuning = provision.Tuning{BlockSize: 8 << 10, Compression: "zstd"}
	v, err := p.Create(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	h.On(v.Content.Source, func(d *zfstest.Dataset) {
		if d.Block != 64<<10 || d.Props["compression"] != "zstd" {
			t.Errorf("blocks of %d, compression %q", d.Block, d.Props["compression"])
		}
	})
}

func TestAVolumeKeepsItsOptionsThoughItsClassChanges(t *testing.T) {
	h := newHost()
	p, _ := start(t, config(h))
	v := create(t, p, "pvc-1", 8)
	r := request("pvc-1", 8)
	r.Tuning = provision.Tuning{BlockSize: 64 << 10, Compression: "zstd"}
	if again, err := p.Create(t.Context(), r); err != nil || again != v {
		t.Errorf("%+v, %v", again, err)
	}
	h.On(v.Content.Source, func(d *zfstest.Dataset) {
		if d.Block != 16<<10 || d.Props["compression"] != "" {
			t.Errorf("blocks of %d, compression %q", d.Block, d.Props["compression"])
		}
	})
}
