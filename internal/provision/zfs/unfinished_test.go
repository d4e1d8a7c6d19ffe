package zfs_test

import (
	"errors"
	"slices"
	"testing"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/zfs"
	"berth.dev/berth/internal/provision/zfs/zfstest"
	"berth.dev/berth/internal/run"
)

// left puts the leftover of a loss of power: a zvol in the place of a volume, without properties.
func left(h *zfstest.Host, name string, data int64) {
	h.PutFilesystem(parent+"/berth-volumes", hidden)
	h.Edit(func(zpools map[string]*zfstest.Zpool) {
		zpools["tank"].Datasets[name] = &zfstest.Dataset{Volsize: unit, Data: data, Props: map[string]string{}}
	})
}

func there(h *zfstest.Host, name string) bool { return slices.Contains(datasets(h), name) }

func TestTheLeftoverOfAVolumeIsNoVolume(t *testing.T) {
	h := newHost()
	left(h, volumes+"pvc-1", 0)
	p, _ := start(t, config(h))
	if _, err := p.Get(t.Context(), "pvc-1"); !errors.Is(err, provision.ErrNotFound) {
		t.Errorf("getting it: %v", err)
	}
	if pool := reported(t, p); len(pool.Volumes) > 0 || pool.Foreign > 0 {
		t.Errorf("reported %+v", pool)
	}
	if v := create(t, p, "pvc-1", 8); v.Size != 8*unit {
		t.Errorf("made %+v", v)
	}
}

func TestTheLeftoverOfAVolumeIsDeletedAsAVolume(t *testing.T) {
	h := newHost()
	left(h, volumes+"pvc-1", 0)
	p, _ := start(t, config(h))
	create(t, p, "pvc-2", 1)
	if p.Wait(); !there(h, volumes+"pvc-1") {
		t.Error("it went although nobody asked for that")
	}
	if err := p.Delete(t.Context(), "pvc-1"); err != nil || there(h, volumes+"pvc-1") {
		t.Errorf("deleting it: %v; there is %v", err, datasets(h))
	}
}

func TestAZvolThatMayBelongToOthersIsNeverDestroyed(t *testing.T) {
	for name, tc := range map[string]struct {
		id      string
		disturb func(*zfstest.Dataset)
	}{
		"the zvol holds data":                       {"pvc-1", func(d *zfstest.Dataset) { d.Data = 2 << 20 }},
		"the zvol has a foreign name":               {"home", func(*zfstest.Dataset) {}},
		"the zvol has the record of another volume": {"pvc-1", func(d *zfstest.Dataset) { d.Props["berth.dev:volume"] = "pvc-2" }},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost()
			left(h, volumes+tc.id, 0)
			edit(h, volumes+tc.id, tc.disturb)
			p, _ := start(t, config(h))
			if _, err := p.Create(t.Context(), request("pvc-1", 1)); tc.id == "pvc-1" && !errors.Is(err, provision.ErrConflict) {
				t.Errorf("creating: %v, want ErrConflict", err)
			}
			if err := p.Delete(t.Context(), "pvc-1"); tc.id == "pvc-1" && !errors.Is(err, provision.ErrConflict) {
				t.Errorf("deleting: %v, want ErrConflict", err)
			}
			if p.Wait(); !there(h, volumes+tc.id) {
				t.Error("it was destroyed")
			}
		})
	}
}

func TestTheLeftoverOfAVolumeStaysOnceOthersHaveWrittenToIt(t *testing.T) {
	for name, ask := range map[string]func(*zfs.Provisioner) error{
		"creating": func(p *zfs.Provisioner) error { _, err := p.Create(t.Context(), request("pvc-1", 1)); return err },
		"deleting": func(p *zfs.Provisioner) error { return p.Delete(t.Context(), "pvc-1") },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost()
			left(h, volumes+"pvc-1", 0)
			p := fresh(t, h)
			reported(t, p)
			edit(h, volumes+"pvc-1", func(d *zfstest.Dataset) { d.Data = 2 << 20 }) // it was not read since
			if err := ask(p); !errors.Is(err, provision.ErrConflict) || !there(h, volumes+"pvc-1") {
				t.Errorf("got %v, want ErrConflict; there is %v", err, datasets(h))
			}
		})
	}
}

func TestTheLeftoverOfAVolumeStaysWhileZFSDoesNotSayWhatItHolds(t *testing.T) {
	h := newHost()
	left(h, volumes+"pvc-1", 0)
	p := fresh(t, h)
	reported(t, p)
	h.Around = only("zfs list", func(c run.Command, _ func() ([]byte, error)) ([]byte, error) { return nil, strange(c) })
	_, creating := p.Create(t.Context(), request("pvc-1", 1))
	for what, err := range map[string]error{"creating": creating, "deleting": p.Delete(t.Context(), "pvc-1")} {
		if !errors.Is(err, provision.ErrUnavailable) || !there(h, volumes+"pvc-1") {
			t.Errorf("%s: %v, want ErrUnavailable; there is %v", what, err, datasets(h))
		}
	}
}

// ZFS makes a zvol before it reserves its room, and cannot destroy it again if udev looks at it.
func TestAVolumeThatHadNoRoomIsNotThere(t *testing.T) {
	for name, from := range map[string]provision.Source{"a blank volume": {}, "a copy of a volume with a filesystem": {Volume: "pvc-1"}} {
		t.Run(name, func(t *testing.T) {
			h := newHost()
			h.Lingering = true
			p, _ := start(t, config(h))
			create(t, p, "pvc-1", 1)
			if _, err := p.Format(t.Context(), provision.FormatRequest{ID: "pvc-1", Filesystem: provision.Ext4}); err != nil {
				t.Fatal(err)
			}
			reported(t, p)
			takeRoom(h)
			r := request("pvc-2", 100)
			r.Source = from
			if _, err := p.Create(t.Context(), r); !errors.Is(err, provision.ErrNoSpace) {
				t.Errorf("got %v, want ErrNoSpace", err)
			}
			if p.Wait(); there(h, volumes+"pvc-2") {
				t.Errorf("there is %v", datasets(h))
			}
		})
	}
}

// takeRoom has others take most of a zpool. The provisioner has not seen that yet.
func takeRoom(h *zfstest.Host) {
	h.Edit(func(zpools map[string]*zfstest.Zpool) {
		zpools["tank"].Datasets["tank/theirs"] = &zfstest.Dataset{Props: map[string]string{}, Data: 900 << 20}
	})
}

func TestAHiddenFilesystemThatACrashLeftVisibleIsHidden(t *testing.T) {
	h := newHost()
	h.PutFilesystem(parent+"/berth-volumes", nil)
	p, _ := start(t, config(h))
	create(t, p, "pvc-1", 1)
	edit(h, parent+"/berth-volumes", func(d *zfstest.Dataset) {
		if d.Props["canmount"] != "off" || d.Props["mountpoint"] != "none" {
			t.Errorf("it has %v", d.Props)
		}
	})
}

// cutShort leaves a zvol as a loss of power does: it grew, and its reservation did not.
func cutShort(h *zfstest.Host, name string, size int64) {
	edit(h, name, func(d *zfstest.Dataset) { d.Volsize = size })
}

func roomIsWhole(t *testing.T, h *zfstest.Host, name string, size int64) {
	t.Helper()
	edit(h, name, func(d *zfstest.Dataset) {
		if d.Volsize != size || d.Refreservation < size {
			t.Errorf("of %d bytes %d are reserved, want %d", d.Volsize, d.Refreservation, size)
		}
	})
}

func TestAZvolThatGrewWithoutItsRoomGetsIt(t *testing.T) {
	h := newHost()
	create(t, fresh(t, h), "pvc-1", 8)
	cutShort(h, volumes+"pvc-1", 16*unit)
	p := fresh(t, h)
	reported(t, p)
	p.Wait()
	roomIsWhole(t, h, volumes+"pvc-1", 16*unit)
}

// The reservation is for pointers, too, so it may be enough for a slightly larger zvol.
func TestAZvolThatGrewALittleWithoutItsRoomGrowsWithIt(t *testing.T) {
	h := newHost()
	create(t, fresh(t, h), "pvc-1", 100)
	cutShort(h, volumes+"pvc-1", 101*unit)
	p := fresh(t, h)
	if _, err := p.Expand(t.Context(), provision.ExpandRequest{ID: "pvc-1", Size: 150 * unit}); err != nil {
		t.Error(err)
	}
	roomIsWhole(t, h, volumes+"pvc-1", 150*unit)
}

func TestAZvolThatGrewWithoutItsRoomHasItWhenItsGrowthIsAnswered(t *testing.T) {
	for name, size := range map[string]int64{"to the wanted size": 16, "beyond the wanted size": 40} {
		t.Run(name, func(t *testing.T) {
			h := newHost()
			create(t, fresh(t, h), "pvc-1", 8)
			cutShort(h, volumes+"pvc-1", 16*unit)
			c := config(h)
			later(t, &c)
			p, _ := start(t, c)
			if _, err := p.Expand(t.Context(), provision.ExpandRequest{ID: "pvc-1", Size: size * unit}); err != nil {
				t.Error(err)
			}
			roomIsWhole(t, h, volumes+"pvc-1", size*unit)
		})
	}
}

func TestAVolumeThatWasThereIsNotTakenBackForWantOfRoom(t *testing.T) {
	h := newHost()
	create(t, fresh(t, h), "pvc-1", 100)
	edit(h, volumes+"pvc-1", func(d *zfstest.Dataset) { d.Refreservation, d.Created = 0, d.Created.AddDate(-40, 0, 0) })
	p := fresh(t, h)
	reported(t, p)
	takeRoom(h)
	if _, err := p.Create(t.Context(), request("pvc-1", 100)); !errors.Is(err, provision.ErrNoSpace) {
		t.Errorf("got %v, want ErrNoSpace", err)
	}
	if !there(h, volumes+"pvc-1") {
		t.Error("it was destroyed")
	}
}
