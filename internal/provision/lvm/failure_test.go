package lvm_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
	"berth.dev/berth/internal/run"
	"berth.dev/berth/internal/run/runtest"
)

var only = runtest.Only

func exit5(c run.Command) error {
	return &run.ExitError{Command: c, Code: 5, Stderr: "something strange"}
}

func TestFactsDecideWhenACommandFails(t *testing.T) {
	for name, tc := range map[string]struct {
		operation string
		disturb   func(h *lvmtest.Host, do func() ([]byte, error))
		want      error
		strange   bool // transient, with LVM's message
	}{
		"LVM made the volume all the same": {"lvcreate", func(_ *lvmtest.Host, do func() ([]byte, error)) { _, _ = do() }, nil, false},
		"LVM made no volume":               {"lvcreate", func(*lvmtest.Host, func() ([]byte, error)) {}, nil, true},
		"another program took the room":    {"lvcreate", func(h *lvmtest.Host, _ func() ([]byte, error)) { h.PutForeign(vg.Name, "theirs", 99*unit) }, provision.ErrNoSpace, false},
		"another program took the name":    {"lvcreate", func(h *lvmtest.Host, _ func() ([]byte, error)) { h.PutForeign(vg.Name, "pvc-2", unit) }, provision.ErrConflict, false},
		"the group vanished": {"lvcreate", func(h *lvmtest.Host, _ func() ([]byte, error)) {
			h.Edit(func(groups map[string]*lvmtest.Group) string { delete(groups, vg.Name); return "" })
		}, provision.ErrPoolMissing, false},
		"a disk vanished": {"lvcreate", func(h *lvmtest.Host, _ func() ([]byte, error)) {
			h.Edit(func(groups map[string]*lvmtest.Group) string { groups[vg.Name].Missing = 1; return "" })
		}, provision.ErrUnavailable, false},
	} {
		t.Run(name, func(t *testing.T) {
			host := lvmtest.NewHost(map[string]int64{vg.Name: 100})
			_, c := counted(host)
			p, _ := start(t, c)
			if _, err := p.Create(t.Context(), request("pvc-1", 1)); err != nil {
				t.Fatal(err)
			}
			host.Around = only(tc.operation, func(c run.Command, do func() ([]byte, error)) ([]byte, error) {
				tc.disturb(host, do)
				return nil, exit5(c)
			})
			v, err := p.Create(t.Context(), request("pvc-2", 2))
			switch {
			case tc.strange:
				if err == nil || !strings.Contains(err.Error(), "something strange") || errors.Is(err, provision.ErrNoSpace) {
					t.Errorf("got %v, want a transient error with LVM's message", err)
				}
			case tc.want != nil:
				if !errors.Is(err, tc.want) {
					t.Errorf("got %v, want %v", err, tc.want)
				}
			case err != nil || v.Size != 2*unit:
				t.Errorf("got %+v, %v", v, err)
			}
		})
	}
}

func TestVolumesOfAGroupThatVanishedAreNotTakenForDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := lvmtest.NewHost(map[string]int64{vg.Name: 100, "empty": 10})
		_, c := counted(host)
		p, _ := start(t, c)
		awaitChange(t, p) // it watches
		if _, err := p.Create(t.Context(), request("pvc-1", 1)); err != nil {
			t.Fatal(err)
		}
		var gone *lvmtest.Group
		host.Edit(func(groups map[string]*lvmtest.Group) string {
			gone = groups[vg.Name]
			delete(groups, vg.Name)
			delete(groups, "empty")
			return gone.Device
		})
		// The signal of the create may still be due.
		eventually(t, func() bool {
			pools, err := p.Report(t.Context())
			return err == nil && len(pools) == 1 && strings.Contains(pools[0].Problem, "missing") && len(pools[0].Volumes) == 1
		}, "the group with the volume is not reported as missing, or the empty one is still there")
		if err := p.Delete(t.Context(), "pvc-1"); !errors.Is(err, provision.ErrPoolMissing) {
			t.Errorf("deleting: %v, want ErrPoolMissing", err)
		}
		if v, err := p.Get(t.Context(), "pvc-1"); err != nil || v.Problem == "" {
			t.Errorf("getting: %+v, %v; want a problem", v, err)
		}
		if _, err := p.Create(t.Context(), request("pvc-2", 1)); !errors.Is(err, provision.ErrPoolMissing) {
			t.Errorf("creating: %v, want ErrPoolMissing", err)
		}
		host.Edit(func(groups map[string]*lvmtest.Group) string { groups[vg.Name] = gone; return gone.Device })
		if err := p.Delete(t.Context(), "pvc-1"); err != nil {
			t.Errorf("deleting when the group came back: %v", err)
		}
	})
}

func TestDamagedGroupsAreReportedAndTakeNothingNew(t *testing.T) {
	for name, damage := range map[string]func(g *lvmtest.Group){
		"missing":  func(g *lvmtest.Group) { g.Missing = 1 },
		"exported": func(g *lvmtest.Group) { g.Exported = true },
	} {
		t.Run(name, func(t *testing.T) {
			host := lvmtest.NewHost(map[string]int64{vg.Name: 100})
			host.Edit(func(groups map[string]*lvmtest.Group) string { damage(groups[vg.Name]); return "" })
			_, c := counted(host)
			p, _ := start(t, c)
			pools, err := p.Report(t.Context())
			if err != nil || !strings.Contains(pools[0].Problem, name) {
				t.Errorf("reported %+v, %v", pools, err)
			}
			if _, err := p.Create(t.Context(), request("pvc-1", 1)); !errors.Is(err, provision.ErrUnavailable) {
				t.Errorf("creating: %v", err)
			}
		})
	}
}

// A disk whose cable is plugged in again may tell of it, and a path that works again does not.
func TestAGroupThatIsWholeAgainWithoutAnEventIsUsedSoon(t *testing.T) {
	for name, breaks := range map[string]func(groups map[string]*lvmtest.Group){
		"the group lacked a disk": func(groups map[string]*lvmtest.Group) { groups[vg.Name].Missing = 1 },
		"the group was missing":   func(groups map[string]*lvmtest.Group) { delete(groups, vg.Name) },
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			host := lvmtest.NewHost(map[string]int64{vg.Name: 100})
			_, c := counted(host)
			p, _ := start(t, c)
			awaitChange(t, p) // it watches
			create(t, p, request("pvc-1", 1))
			var g *lvmtest.Group
			host.Edit(func(groups map[string]*lvmtest.Group) string { g = groups[vg.Name]; breaks(groups); return g.Device })
			eventually(t, func() bool { return poolOf(t, p, vg).Problem != "" }, "no problem is reported")
			host.Edit(func(groups map[string]*lvmtest.Group) string { g.Missing, groups[vg.Name] = 0, g; return "" })
			<-time.After(time.Minute)
			if got := poolOf(t, p, vg); got.Problem != "" {
				t.Errorf("a minute later: %s", got.Problem)
			}
		}))
	}
}

func TestMissingProgramIsUnavailable(t *testing.T) {
	host := lvmtest.NewHost(nil)
	host.Around = func(run.Command, func() ([]byte, error)) ([]byte, error) {
		return nil, errors.New("executable file not found")
	}
	_, c := counted(host)
	p, _ := start(t, c)
	if _, err := p.Report(t.Context()); !errors.Is(err, provision.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
}

func TestMkfsThatFailsLeavesTheVolumeBlank(t *testing.T) {
	host := lvmtest.NewHost(map[string]int64{vg.Name: 100})
	_, c := counted(host)
	good := c.Mkfs
	fail := true
	c.Mkfs = func(ctx context.Context, v provision.Volume, fs, options string) error {
		if fail {
			return errors.New("mkfs is broken")
		}
		return good(ctx, v, fs, options)
	}
	p, _ := start(t, c)
	if _, err := p.Create(t.Context(), request("pvc-1", 8)); err != nil {
		t.Fatal(err)
	}
	format := provision.FormatRequest{ID: "pvc-1", Filesystem: "ext4"}
	if _, err := p.Format(t.Context(), format); err == nil || !strings.Contains(err.Error(), "mkfs is broken") {
		t.Errorf("got %v", err)
	}
	if v, err := p.Get(t.Context(), "pvc-1"); err != nil || v.Filesystem != "" {
		t.Errorf("after the failure: %+v, %v", v, err)
	}
	fail = false
	// The record fails once: nothing was mounted, so making it again is right.
	host.Around = only("lvchange", func(c run.Command, _ func() ([]byte, error)) ([]byte, error) {
		host.Around = nil
		return nil, exit5(c)
	})
	if _, err := p.Format(t.Context(), format); err == nil {
		t.Error("a record that was not written passed for one")
	}
	if v, err := p.Format(t.Context(), format); err != nil || v.Filesystem != "ext4" {
		t.Errorf("the next try: %+v, %v", v, err)
	}
}

func TestDeviceNodeOfAnotherVolumeIsNeverFormatted(t *testing.T) {
	host := lvmtest.NewHost(map[string]int64{vg.Name: 100})
	host.PutForeign(vg.Name, "root", unit)
	_, c := counted(host)
	p, _ := start(t, c)
	v, err := p.Create(t.Context(), request("pvc-1", 8))
	if err != nil {
		t.Fatal(err)
	}
	format := provision.FormatRequest{ID: "pvc-1", Filesystem: "ext4"}
	host.Mislead(v.Content.Source, "/dev/vg-a/root")
	host.Around = only("vgmknodes", func(c run.Command, _ func() ([]byte, error)) ([]byte, error) { return nil, exit5(c) })
	if _, err := p.Format(t.Context(), format); !errors.Is(err, provision.ErrUnavailable) || !strings.Contains(err.Error(), "is another device: dm:vg--a-root ") {
		t.Errorf("got %v, want ErrUnavailable that says what the device is", err)
	}
	host.Around = nil
	if v, err := p.Format(t.Context(), format); err != nil || v.Filesystem != "ext4" {
		t.Errorf("once LVM makes the node anew: %+v, %v", v, err)
	}
	host.On("/dev/vg-a/root", func(v *lvmtest.Volume) {
		if v.Signature != "" {
			t.Error("a filesystem was made on somebody else's device")
		}
	})
}
