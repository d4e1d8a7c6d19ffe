package zfs_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/zfs/zfstest"
	"berth.dev/berth/internal/run"
	"berth.dev/berth/internal/run/runtest"
)

var only = runtest.Only

func strange(c run.Command) error {
	return &run.ExitError{Command: c, Code: 1, Stderr: "something strange"}
}

// create makes a volume, or fails the test.
func create(t *testing.T, p provision.Provisioner, id string, units int64) provision.Volume {
	t.Helper()
	v, err := p.Create(t.Context(), request(id, units))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func snap(t *testing.T, p provision.Snapshotter, id, of string) provision.Snapshot {
	t.Helper()
	s, err := p.Snapshot(t.Context(), provision.SnapshotRequest{ID: id, Volume: of})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestFactsDecideWhenACommandFails(t *testing.T) {
	for name, tc := range map[string]struct {
		operation string
		disturb   func(h *zfstest.Host, do func() ([]byte, error))
		want      error
		strange   bool // transient, with ZFS's message
	}{
		"ZFS made the zvol all the same": {"zfs create", func(_ *zfstest.Host, do func() ([]byte, error)) { _, _ = do() }, nil, false},
		"ZFS made no zvol":               {"zfs create", func(*zfstest.Host, func() ([]byte, error)) {}, nil, true},
		"another program took the room":  {"zfs create", func(h *zfstest.Host, _ func() ([]byte, error)) { h.PutForeign(parent+"/theirs", 920<<20) }, provision.ErrNoSpace, false},
		"another program took the name":  {"zfs create", func(h *zfstest.Host, _ func() ([]byte, error)) { h.PutForeign(volumes+"pvc-2", unit) }, provision.ErrConflict, false},
		"the zpool degraded": {"zfs create", func(h *zfstest.Host, _ func() ([]byte, error)) {
			h.Edit(func(zpools map[string]*zfstest.Zpool) { zpools["tank"].State = "DEGRADED" })
		}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost()
			h.PutFilesystem(parent+"/berth-volumes", hidden)
			p := fresh(t, h) // it watches nothing: the watch may see the zpool fail first
			create(t, p, "pvc-1", 1)
			once := false
			h.Around = only(tc.operation, func(c run.Command, do func() ([]byte, error)) ([]byte, error) {
				if once && !tc.strange {
					return do()
				}
				once = true
				tc.disturb(h, do)
				return nil, strange(c)
			})
			v, err := p.Create(t.Context(), request("pvc-2", 20))
			switch {
			case tc.strange:
				if err == nil || !strings.Contains(err.Error(), "something strange") || errors.Is(err, provision.ErrNoSpace) {
					t.Errorf("got %v, want a transient error with ZFS's message", err)
				}
			case tc.want != nil:
				if !errors.Is(err, tc.want) {
					t.Errorf("got %v, want %v", err, tc.want)
				}
			case err != nil || v.Size != 20*unit:
				t.Errorf("got %+v, %v", v, err)
			}
		})
	}
}

func TestAFailedCreationInAnAlmostFullZpoolCountsAsNoRoom(t *testing.T) {
	h := newHost()
	p, _ := start(t, config(h))
	create(t, p, "pvc-1", 150)
	h.Around = only("zfs create", func(c run.Command, _ func() ([]byte, error)) ([]byte, error) { return nil, strange(c) })
	// There is room by the figures, and less than twice as much.
	if _, err := p.Create(t.Context(), request("pvc-2", 60)); !errors.Is(err, provision.ErrNoSpace) {
		t.Errorf("got %v, want ErrNoSpace", err)
	}
}

func TestAStaleLinkIsNotFormatted(t *testing.T) {
	h := newHost()
	c := config(h)
	c.Mkfs = func(ctx context.Context, v provision.Volume, filesystem, options string) error {
		h.Mislead(v.Content.Source, devices+volumes+"pvc-2")
		return h.Mkfs(ctx, v, filesystem, options)
	}
	p, _ := start(t, c)
	create(t, p, "pvc-1", 8)
	other := create(t, p, "pvc-2", 8)
	if _, err := p.Format(t.Context(), provision.FormatRequest{ID: "pvc-1", Filesystem: provision.Ext4}); !errors.Is(err, provision.ErrUnavailable) {
		t.Errorf("got %v, want ErrUnavailable", err)
	}
	h.On(other.Content.Source, func(d *zfstest.Dataset) {
		if d.Signature != "" {
			t.Error("a filesystem was made on a device that is not the volume's")
		}
	})
}

func TestAVolumeThatUdevLooksAtIsDeletedAllTheSame(t *testing.T) {
	h := newHost()
	p, _ := start(t, config(h))
	v := create(t, p, "pvc-1", 8)
	h.On(v.Content.Source, func(d *zfstest.Dataset) { d.Probed = true })
	if err := p.Delete(t.Context(), "pvc-1"); err != nil {
		t.Error(err)
	}
}

func TestAMountedVolumeWithSnapshotsIsInUse(t *testing.T) {
	h := newHost()
	p, _ := start(t, config(h))
	v := create(t, p, "pvc-1", 8)
	snap(t, p, "snap-1", "pvc-1")
	h.On(v.Content.Source, func(d *zfstest.Dataset) { d.Mounted = true })
	if err := p.Delete(t.Context(), "pvc-1"); !errors.Is(err, provision.ErrInUse) {
		t.Errorf("got %v, want ErrInUse", err)
	}
	if got, err := p.Get(t.Context(), "pvc-1"); err != nil || got != v {
		t.Errorf("after that it is %+v, %v", got, err)
	}
	h.On(v.Content.Source, func(d *zfstest.Dataset) { d.Mounted = false })
	if err := p.Delete(t.Context(), "pvc-1"); err != nil {
		t.Error(err)
	}
}

func TestAMountedVolumeDoesNotGrow(t *testing.T) {
	h := newHost()
	p, _ := start(t, config(h))
	v := create(t, p, "pvc-1", 8)
	mount := func(yes bool) { h.On(v.Content.Source, func(d *zfstest.Dataset) { d.Mounted = yes }) }
	grow := func() (provision.Volume, error) {
		return p.Expand(t.Context(), provision.ExpandRequest{ID: "pvc-1", Size: 200 * unit})
	}
	mount(true)
	if _, err := grow(); !errors.Is(err, provision.ErrInUse) || errors.Is(err, provision.ErrNoSpace) {
		t.Errorf("got %v, want ErrInUse", err)
	}
	if got, err := p.Get(t.Context(), "pvc-1"); err != nil || got != v {
		t.Errorf("after that it is %+v, %v", got, err)
	}
	mount(false)
	if got, err := grow(); err != nil || got.Size != 200*unit {
		t.Errorf("unmounted it is %+v, %v", got, err)
	}
}

func TestConfigurationsThatCannotWorkAreRefused(t *testing.T) {
	for name, change := range map[string]func(*configuration){
		"no runner":  func(c *configuration) { c.Runner = nil },
		"no devices": func(c *configuration) { c.Devices = nil },
		"no mkfs":    func(c *configuration) { c.Mkfs = nil },
	} {
		t.Run(name, func(t *testing.T) {
			c := config(newHost())
			change(&c)
			if _, err := newProvisioner(c); err == nil {
				t.Error("it was accepted")
			}
		})
	}
}
