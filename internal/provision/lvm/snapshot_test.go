package lvm_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
	"berth.dev/berth/internal/run"
)

func snapshotOf(volume string) provision.SnapshotRequest {
	return provision.SnapshotRequest{ID: "snap-1", Volume: volume, Limits: provision.Limits{Overprovision: 200}}
}

func take(t *testing.T, p provision.Full, r provision.SnapshotRequest) provision.Snapshot {
	t.Helper()
	s, err := p.Snapshot(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestASnapshotIsKeptFromUseAndACopyIsNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := thinHost()
		_, c := counted(host)
		p, stop := start(t, c)
		create(t, p, promised("pvc-1", 2))
		s := take(t, p, snapshotOf("pvc-1"))
		if want := (provision.Snapshot{ID: "snap-1", Volume: "pvc-1", Pool: thin, Size: 2 * unit, Allocated: 2 * unit, Taken: time.Now().Truncate(time.Second).UTC()}); s != want {
			t.Errorf("took %+v, want %+v", s, want)
		}
		create(t, p, copyOf("pvc-2", 2, provision.Source{Snapshot: s.ID}))
		stop()
		for _, reboot := range []bool{false, true} {
			if reboot {
				for _, id := range []string{"pvc-1", "pvc-2"} {
					host.On("/dev/vg-a/"+id, func(v *lvmtest.Volume) { v.Active = false })
				}
				p, stop = start(t, c)
				poolOf(t, p, thin)
				p.Wait()
				stop()
			}
			host.On("/dev/vg-a/snap-1", func(v *lvmtest.Volume) {
				if v.Active || !v.ReadOnly || !slices.Contains(v.Tags, "berth.dev/snapshot=snap-1") {
					t.Errorf("reboot %v: the snapshot is %+v", reboot, v)
				}
			})
			host.On("/dev/vg-a/pvc-2", func(v *lvmtest.Volume) {
				if !v.Active || v.ReadOnly {
					t.Errorf("reboot %v: the copy is %+v", reboot, v)
				}
			})
		}
	})
}

func TestSnapshotsOfOthersAreCountedAndNeverTouched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := thinHost()
		p := over(t, host)
		create(t, p, promised("pvc-1", 2))
		take(t, p, snapshotOf("pvc-1"))
		host.PutForeignThin(vg.Name, "pool", "snap-theirs", "pvc-1", 2*unit)
		host.Edit(func(groups map[string]*lvmtest.Group) string { // an administrator renames a snapshot, and so keeps it
			g := groups[vg.Name]
			g.Volumes["snap-kept"] = g.Volumes["snap-1"]
			delete(g.Volumes, "snap-1")
			g.Seqno++
			return g.Device
		})
		eventually(t, func() bool { return poolOf(t, p, thin).Foreign == 4*unit }, "the snapshots were not noticed")
		if pool := poolOf(t, p, thin); len(pool.Snapshots) != 0 || pool.Free != 94*unit {
			t.Errorf("reported %+v", pool)
		}
		for _, id := range []string{"snap-theirs", "snap-kept"} {
			if _, err := p.GetSnapshot(t.Context(), id); !errors.Is(err, provision.ErrNotFound) {
				t.Errorf("getting %s: %v", id, err)
			}
			if err := p.DeleteSnapshot(t.Context(), id); !errors.Is(err, provision.ErrConflict) {
				t.Errorf("deleting %s: %v", id, err)
			}
			if _, err := p.Snapshot(t.Context(), provision.SnapshotRequest{ID: id, Volume: "pvc-1"}); !errors.Is(err, provision.ErrConflict) {
				t.Errorf("taking %s: %v", id, err)
			}
		}
		if err := p.Delete(t.Context(), "pvc-1"); err != nil {
			t.Errorf("deleting their origin: %v", err)
		}
		if pool := poolOf(t, p, thin); pool.Foreign != 4*unit {
			t.Errorf("in the end %+v", pool)
		}
	})
}

func TestSnapshotsAndCopiesAreAdmittedAsVolumesAre(t *testing.T) {
	for name, tc := range map[string]struct {
		limits provision.Limits
		fill   func(*lvmtest.Host)
		want   error
	}{
		"the pool may be promised once":                           {provision.Limits{}, func(*lvmtest.Host) {}, provision.ErrNoSpace},
		"the pool may be promised twice":                          {provision.Limits{Overprovision: 200}, func(*lvmtest.Host) {}, nil},
		"the pool may be promised twice and is filled too far":    {provision.Limits{Overprovision: 200, MaxFill: 80}, func(h *lvmtest.Host) { onPool(h, func(p *lvmtest.ThinPool) { p.Filled = 80 }) }, provision.ErrNoSpace},
		"the pool may be promised twice and has damaged metadata": {provision.Limits{Overprovision: 200}, func(h *lvmtest.Host) { onPool(h, func(p *lvmtest.ThinPool) { p.NeedsCheck = true }) }, provision.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			host := thinHost()
			p := over(t, host)
			create(t, p, promised("pvc-1", 60))
			tc.fill(host)
			r := snapshotOf("pvc-1")
			r.Limits = tc.limits
			if _, err := p.Snapshot(t.Context(), r); !errors.Is(err, tc.want) {
				t.Errorf("a snapshot: %v, want %v", err, tc.want)
			}
			clone := copyOf("pvc-2", 60, provision.Source{Volume: "pvc-1"})
			clone.Limits = tc.limits
			if _, err := p.Create(t.Context(), clone); !errors.Is(err, tc.want) {
				t.Errorf("a clone: %v, want %v", err, tc.want)
			}
			if pool := poolOf(t, p, thin); tc.want != nil && (len(pool.Snapshots) > 0 || len(pool.Volumes) > 1) {
				t.Errorf("there is %+v", pool)
			}
		})
	}
}

func TestFactsDecideWhenASnapshotFails(t *testing.T) {
	edit := func(f func(*lvmtest.Group)) func(*lvmtest.Host, func() ([]byte, error)) {
		return func(h *lvmtest.Host, _ func() ([]byte, error)) {
			h.Edit(func(groups map[string]*lvmtest.Group) string { f(groups[vg.Name]); return "" })
		}
	}
	for name, tc := range map[string]struct {
		disturb func(h *lvmtest.Host, do func() ([]byte, error))
		want    error
	}{
		"LVM took the snapshot all the same": {func(_ *lvmtest.Host, do func() ([]byte, error)) { _, _ = do() }, nil},
		"the volume vanished":                {edit(func(g *lvmtest.Group) { delete(g.Volumes, "pvc-1") }), provision.ErrNotFound},
		"the pool vanished":                  {edit(func(g *lvmtest.Group) { delete(g.Volumes, "pool") }), provision.ErrUnavailable},
		"the pool filled up":                 {edit(func(g *lvmtest.Group) { g.Volumes["pvc-1"].Data = 100 * unit }), provision.ErrNoSpace},
		"another program took the name": {edit(func(g *lvmtest.Group) {
			g.Volumes["snap-1"] = &lvmtest.Volume{Extents: 1}
		}), provision.ErrConflict},
	} {
		t.Run(name, func(t *testing.T) {
			host := thinHost()
			p := over(t, host)
			create(t, p, promised("pvc-1", 2))
			host.Around = only("lvcreate", func(c run.Command, do func() ([]byte, error)) ([]byte, error) {
				tc.disturb(host, do)
				return nil, exit5(c)
			})
			if s, err := p.Snapshot(t.Context(), snapshotOf("pvc-1")); !errors.Is(err, tc.want) || tc.want == nil && (err != nil || s.Size != 2*unit) {
				t.Errorf("got %+v, %v, want %v", s, err, tc.want)
			}
		})
	}
}

func TestSnapshotsOfAGroupThatVanishedAreNotTakenForDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := thinHost()
		p := over(t, host)
		create(t, p, promised("pvc-1", 2))
		s := take(t, p, snapshotOf("pvc-1"))
		if err := p.Delete(t.Context(), "pvc-1"); err != nil {
			t.Fatal(err)
		}
		host.Edit(func(groups map[string]*lvmtest.Group) string {
			g := groups[vg.Name]
			delete(groups, vg.Name)
			return g.Device
		})
		eventually(t, func() bool {
			got, err := p.GetSnapshot(t.Context(), s.ID)
			_, reportErr := p.Report(t.Context())
			return err == nil && reportErr == nil && strings.Contains(got.Problem, "missing")
		}, "the snapshot has no problem")
		if err := p.DeleteSnapshot(t.Context(), s.ID); !errors.Is(err, provision.ErrPoolMissing) {
			t.Errorf("deleting: %v", err)
		}
		if _, err := p.Create(t.Context(), copyOf("pvc-2", 2, provision.Source{Snapshot: s.ID})); !errors.Is(err, provision.ErrPoolMissing) {
			t.Errorf("restoring: %v", err)
		}
	})
}

func TestAnOpenSnapshotIsInUse(t *testing.T) {
	host := thinHost()
	p := over(t, host)
	create(t, p, promised("pvc-1", 2))
	s := take(t, p, snapshotOf("pvc-1"))
	host.On("/dev/vg-a/snap-1", func(v *lvmtest.Volume) { v.Active, v.Open = true, true })
	if err := p.DeleteSnapshot(t.Context(), s.ID); !errors.Is(err, provision.ErrInUse) {
		t.Errorf("deleting: %v", err)
	}
	host.On("/dev/vg-a/snap-1", func(v *lvmtest.Volume) { v.Open = false })
	if err := p.DeleteSnapshot(t.Context(), s.ID); err != nil {
		t.Errorf("deleting when it is closed: %v", err)
	}
}
