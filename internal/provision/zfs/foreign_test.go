package zfs_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/zfs/zfstest"
)

// edit changes a dataset as others do.
func edit(h *zfstest.Host, name string, f func(*zfstest.Dataset)) {
	h.Edit(func(zpools map[string]*zfstest.Zpool) { f(zpools["tank"].Datasets[name]) })
}

func TestSnapshotsOfOthersOutliveTheVolume(t *testing.T) {
	h := newHost()
	p, _ := start(t, config(h))
	create(t, p, "pvc-1", 2)
	edit(h, volumes+"pvc-1", func(d *zfstest.Dataset) {
		d.Snapshots["daily"] = &zfstest.Snapshot{Volsize: d.Volsize, TXG: 7}
	})
	if err := p.Delete(t.Context(), "pvc-1"); err != nil {
		t.Fatal(err)
	}
	if names := datasets(h); !slices.Contains(names, parent+"/berth-trash/pvc-1.1@daily") {
		t.Errorf("the snapshot is gone: %v", names)
	}
	if pool := reported(t, p); len(pool.Volumes)+len(pool.Snapshots) > 0 {
		t.Errorf("reported %+v", pool)
	}
	create(t, p, "pvc-1", 3) // the name is free
}

func TestASnapshotOfOthersThatIsNamedLikeABaseStays(t *testing.T) {
	h := newHost()
	create(t, fresh(t, h), "pvc-1", 2)
	edit(h, volumes+"pvc-1", func(d *zfstest.Dataset) {
		d.Snapshots["berth-base-mine"] = &zfstest.Snapshot{Volsize: d.Volsize, TXG: 7}
		d.Snapshots["berth-base-renamed"] = &zfstest.Snapshot{Volsize: d.Volsize, TXG: 8, Props: map[string]string{"berth.dev:snapshot": "snap-1"}}
	})
	p := fresh(t, h)
	r := request("pvc-2", 2)
	r.Source.Volume = "pvc-1"
	made(t, p, r)
	if pool := reported(t, p); len(pool.Snapshots) > 0 {
		t.Errorf("reported %+v", pool.Snapshots)
	}
	p.Wait()
	for _, name := range []string{"berth-base-mine", "berth-base-renamed"} {
		if !there(h, volumes+"pvc-1@"+name) {
			t.Errorf("%s is gone: %v", name, datasets(h))
		}
	}
}

func TestARenamedVolumeIsNotBerths(t *testing.T) {
	h := newHost()
	p, _ := start(t, config(h))
	create(t, p, "pvc-1", 2)
	h.Edit(func(zpools map[string]*zfstest.Zpool) {
		all := zpools["tank"].Datasets
		all[volumes+"pvc-2"] = all[volumes+"pvc-1"]
		delete(all, volumes+"pvc-1")
	})
	later := fresh(t, h)
	for _, id := range []string{"pvc-1", "pvc-2"} {
		if _, err := later.Get(t.Context(), id); !errors.Is(err, provision.ErrNotFound) {
			t.Errorf("%s: %v, want ErrNotFound", id, err)
		}
	}
	if err := later.Delete(t.Context(), "pvc-2"); !errors.Is(err, provision.ErrConflict) {
		t.Errorf("deleting: %v, want ErrConflict", err)
	}
	if pool := reported(t, later); pool.Foreign < 2*unit {
		t.Errorf("reported %+v", pool)
	}
}

func TestAnInheritedPropertyIsNoRecord(t *testing.T) {
	h := newHost()
	edit(h, parent, func(d *zfstest.Dataset) {
		d.Props["berth.dev:volume"], d.Props["berth.dev:fs"], d.Props["berth.dev:source"] = "pvc-0", "xfs", "volume/pvc-9"
	})
	h.PutForeign(volumes+"pvc-2", unit)
	p, _ := start(t, config(h))
	if v := create(t, p, "pvc-1", 8); v.Filesystem != "" {
		t.Errorf("created %+v", v)
	}
	snap(t, p, "snap-1", "pvc-1")
	if _, err := p.Format(t.Context(), provision.FormatRequest{ID: "pvc-1", Filesystem: provision.Ext4}); err != nil {
		t.Fatal(err)
	}
	later := fresh(t, h)
	if v, err := later.Get(t.Context(), "pvc-1"); err != nil || v.Filesystem != provision.Ext4 || v.Source != (provision.Source{}) {
		t.Errorf("got %+v, %v", v, err)
	}
	if s, err := later.GetSnapshot(t.Context(), "snap-1"); err != nil || s.Filesystem != "" {
		t.Errorf("the snapshot of a blank volume is %+v, %v", s, err)
	}
	if _, err := later.Get(t.Context(), "pvc-2"); !errors.Is(err, provision.ErrNotFound) {
		t.Errorf("a foreign zvol: %v", err)
	}
}

func TestOnlyMarkedFilesystemsArePools(t *testing.T) {
	h := newHost()
	h.PutFilesystem("tank/home", nil)
	h.PutFilesystem(parent+"/below", nil) // inherits the mark
	p, _ := start(t, config(h))
	pools, err := p.Report(t.Context())
	var names []string
	for _, pool := range pools {
		names = append(names, pool.Name)
	}
	if err != nil || strings.Join(names, " ") != "zfs:other zfs:tank zfs:tank/berth" {
		t.Errorf("reported %v, %v", names, err)
	}
	r := request("pvc-1", 1)
	r.Pool.Name = "zfs:tank/home"
	if _, err := p.Create(t.Context(), r); !errors.Is(err, provision.ErrPoolMissing) || !strings.Contains(err.Error(), "zfs set berth.dev:pool=tank/home tank/home") {
		t.Errorf("got %v, want ErrPoolMissing and how to mark it", err)
	}
}

func TestPoolsOfOneZpoolShareItsRoom(t *testing.T) {
	h := newHost()
	edit(h, parent, func(d *zfstest.Dataset) { d.Quota = 40 << 20 })
	p, _ := start(t, config(h))
	if pool := reported(t, p); pool.Total != 36<<20 || pool.Free != 36<<20 {
		t.Errorf("a pool with a quota of 40Mi has %+v", pool)
	}
	if _, err := p.Create(t.Context(), request("pvc-1", 10)); !errors.Is(err, provision.ErrNoSpace) {
		t.Errorf("more than the quota: %v", err)
	}
	create(t, p, "pvc-1", 5)
	pools, err := p.Report(t.Context())
	if err != nil || pools[1].Foreign != 5*unit || pools[1].Name != "zfs:tank" {
		t.Errorf("reported %+v, %v, want what one pool holds to be foreign in the other", pools, err)
	}
}

func TestFilesystemsOfAHiddenNameElsewhereAreNotBerths(t *testing.T) {
	h := newHost()
	h.PutFilesystem("tank/home", nil)
	h.PutFilesystem("tank/home/berth-volumes", nil)
	h.PutForeign("tank/home/berth-volumes/pvc-1", unit)
	h.PutFilesystem("tank/home/berth-trash", nil)
	h.PutForeign("tank/home/berth-trash/pvc-1.1", unit)
	before := datasets(h)
	p, _ := start(t, config(h))
	create(t, p, "pvc-2", 1)
	if err := p.Delete(t.Context(), "pvc-2"); err != nil {
		t.Fatal(err)
	}
	p.Wait()
	if diff := cmp.Diff(append(before, parent+"/berth-volumes"), datasets(h), cmpopts.SortSlices(strings.Compare)); diff != "" {
		t.Errorf("what there is (-want +got):\n%s", diff)
	}
}

// copied puts a copy of a volume with its record elsewhere, as zfs send -p does.
func copied(h *zfstest.Host, from, to string) {
	h.Edit(func(zpools map[string]*zfstest.Zpool) {
		d := zpools["tank"].Datasets[from].Received()
		all := zpools[strings.Split(to, "/")[0]].Datasets
		all[to[:strings.LastIndex(to, "/")]], all[to] = &zfstest.Dataset{Props: map[string]string{}}, d
	})
}

func TestABackupWithItsPropertiesIsNoVolume(t *testing.T) {
	h := newHost()
	p, _ := start(t, config(h))
	v := create(t, p, "pvc-1", 1)
	h.Edit(func(zpools map[string]*zfstest.Zpool) {
		zpools["other"].Datasets["other/backup"] = &zfstest.Dataset{Props: map[string]string{"berth.dev:pool": parent}}
	})
	copied(h, volumes+"pvc-1", "other/backup/berth-volumes/pvc-1")
	later := fresh(t, h)
	if got, err := later.Get(t.Context(), "pvc-1"); err != nil || got != v {
		t.Errorf("got %+v, %v", got, err)
	}
	if err := later.Delete(t.Context(), "pvc-1"); err != nil || !slices.Contains(datasets(h), "other/backup/berth-volumes/pvc-1") {
		t.Errorf("deleting: %v; there is %v", err, datasets(h))
	}
}

func TestTwoVolumesOfOneIDAreBothRefused(t *testing.T) {
	h := newHost()
	p, _ := start(t, config(h))
	create(t, p, "pvc-1", 1)
	copied(h, volumes+"pvc-1", "other/berth-volumes/pvc-1")
	later := fresh(t, h)
	pools, err := later.Report(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, pool := range pools {
		for _, v := range pool.Volumes {
			if !strings.Contains(v.Problem, "zfs inherit berth.dev:volume") {
				t.Errorf("reported %+v", v)
			}
		}
	}
	if _, err := later.Get(t.Context(), "pvc-1"); !errors.Is(err, provision.ErrConflict) {
		t.Errorf("getting: %v", err)
	}
	if err := later.Delete(t.Context(), "pvc-1"); !errors.Is(err, provision.ErrConflict) {
		t.Errorf("deleting: %v", err)
	}
	if _, err := later.Create(t.Context(), request("pvc-1", 1)); !errors.Is(err, provision.ErrConflict) || !strings.Contains(err.Error(), "zfs inherit") {
		t.Errorf("creating: %v", err)
	}
	if _, err := later.Snapshot(t.Context(), provision.SnapshotRequest{ID: "snap-1", Volume: "pvc-1"}); !errors.Is(err, provision.ErrConflict) {
		t.Errorf("taking a snapshot: %v", err)
	}
}

// A backup of a volume was received with its snapshots, and the volume bears another id.
func TestTwoSnapshotsOfOneIDAreBothRefused(t *testing.T) {
	h := newHost()
	p := fresh(t, h)
	create(t, p, "pvc-1", 1)
	snap(t, p, "snap-1", "pvc-1")
	h.PutFilesystem("other/berth-volumes", hidden)
	copied(h, volumes+"pvc-1", "other/berth-volumes/pvc-1")
	edit(h, volumes+"pvc-1", func(d *zfstest.Dataset) { d.Props["berth.dev:volume"] = "pvc-2" })
	h.Edit(func(zpools map[string]*zfstest.Zpool) {
		all := zpools["tank"].Datasets
		all[volumes+"pvc-2"] = all[volumes+"pvc-1"]
		delete(all, volumes+"pvc-1")
	})
	p = fresh(t, h)
	pools, err := p.Report(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, pool := range pools {
		for _, s := range pool.Snapshots {
			if !strings.Contains(s.Problem, "zfs inherit berth.dev:snapshot") {
				t.Errorf("reported %+v", s)
			}
		}
	}
	r := request("pvc-3", 1)
	r.Source.Snapshot = "snap-1"
	_, creating := p.Create(t.Context(), r)
	_, getting := p.GetSnapshot(t.Context(), "snap-1")
	_, again := p.Snapshot(t.Context(), provision.SnapshotRequest{ID: "snap-1", Volume: "pvc-1"})
	for what, err := range map[string]error{"creating": creating, "getting": getting, "taking": again, "deleting": p.DeleteSnapshot(t.Context(), "snap-1")} {
		if !errors.Is(err, provision.ErrConflict) {
			t.Errorf("%s: %v, want ErrConflict", what, err)
		}
	}
	if !there(h, volumes+"pvc-2@snap-1") || !there(h, "other/berth-volumes/pvc-1@snap-1") {
		t.Errorf("one was destroyed: %v", datasets(h))
	}
}

func TestNoVolumeIsMadeOfOneOfTwoThatBearItsSourcesID(t *testing.T) {
	h := newHost()
	p := fresh(t, h)
	create(t, p, "pvc-1", 1)
	copied(h, volumes+"pvc-1", "other/berth-volumes/pvc-1")
	p = fresh(t, h)
	reported(t, p)
	r := request("pvc-2", 1)
	r.Source.Volume = "pvc-1"
	if _, err := p.Create(t.Context(), r); !errors.Is(err, provision.ErrConflict) || there(h, volumes+"pvc-2") {
		t.Errorf("got %v, want ErrConflict; there is %v", err, datasets(h))
	}
}
