package memory_test

import (
	"errors"
	"fmt"
	"testing"

	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/mount/conformance"
	"berth.dev/berth/internal/mount/memory"
	"berth.dev/berth/internal/provision"
	disks "berth.dev/berth/internal/provision/memory"
)

var pool = provision.PoolRef{Type: "LVM", Name: "vg"}

func TestConformance(t *testing.T) {
	conformance.Run(t, func(t *testing.T) conformance.Harness {
		d := disks.NewDisks(disks.PoolConfig{PoolRef: pool, Total: 10 << 30})
		p := disks.New(d, nil)
		n := 0
		return conformance.Harness{
			Mounter: memory.New(d),
			Labels:  true,
			Device: func(fs string) provision.Volume {
				n++
				return device(t, p, fmt.Sprintf("pvc-%d", n), fs)
			},
			Enlarge: func(v provision.Volume) {
				if _, err := p.Expand(t.Context(), provision.ExpandRequest{ID: v.ID, Size: v.Size + 64<<20}); err != nil {
					t.Fatal(err)
				}
			},
		}
	})
}

func device(t *testing.T, p provision.Provisioner, id, fs string) provision.Volume {
	t.Helper()
	v, err := p.Create(t.Context(), provision.CreateRequest{ID: id, Pool: pool, Size: 300 << 20})
	if err == nil && fs != "" {
		_, err = p.Format(t.Context(), provision.FormatRequest{ID: id, Filesystem: fs})
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestMountedVolumeCannotBeDeleted(t *testing.T) {
	d := disks.NewDisks(disks.PoolConfig{PoolRef: pool, Total: 10 << 30})
	p, m := disks.New(d, nil), memory.New(d)
	v := device(t, p, "pvc-1", "ext4")
	r := mount.Request{Content: v.Content, Target: t.TempDir() + "/a", Filesystem: "ext4"}
	if err := m.Mount(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if err := p.Delete(t.Context(), "pvc-1"); !errors.Is(err, provision.ErrInUse) {
		t.Errorf("deleting while mounted: %v", err)
	}
	if got := m.Mounts(r.Content.Source); len(got) != 1 || got[0] != r.Target {
		t.Errorf("mounted at %v", got)
	}
	if err := m.Unmount(t.Context(), r.Target); err != nil {
		t.Fatal(err)
	}
	if err := p.Delete(t.Context(), "pvc-1"); err != nil {
		t.Errorf("deleting after unmounting: %v", err)
	}
}
