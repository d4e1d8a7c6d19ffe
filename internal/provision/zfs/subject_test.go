package zfs_test

import (
	"errors"
	"testing"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/zfs"
	"berth.dev/berth/internal/provision/zfs/zfstest"
	"berth.dev/berth/internal/run"
)

const trash = parent + "/berth-trash/"

// backup is the content of a dataset that bears a volume's name and is not the volume.
const backup = "a backup"

func snapped(t *testing.T, p *zfs.Provisioner) { snap(t, p, "snap-1", "pvc-1") }

func removed(t *testing.T, p *zfs.Provisioner) {
	if err := p.Delete(t.Context(), "pvc-1"); err != nil && !errors.Is(err, provision.ErrUnavailable) && !errors.Is(err, provision.ErrConflict) {
		t.Errorf("deleting the volume: %v", err)
	}
}

func forgotten(t *testing.T, p *zfs.Provisioner) {
	if err := p.DeleteSnapshot(t.Context(), "snap-1"); err != nil && !errors.Is(err, provision.ErrUnavailable) {
		t.Errorf("deleting the snapshot: %v", err)
	}
}

// losses are the operations that take data away from a dataset. The last of do, or the tidying
// after it, does so.
var losses = map[string]struct {
	of, command string
	prepare, do []func(*testing.T, *zfs.Provisioner)
}{
	"a volume is destroyed":            {of: volumes + "pvc-1", command: "zfs destroy", do: steps(removed)},
	"a volume goes to the trash":       {of: volumes + "pvc-1", command: "zfs rename", prepare: steps(snapped), do: steps(removed)},
	"a snapshot is destroyed":          {of: volumes + "pvc-1", command: "zfs destroy", prepare: steps(snapped), do: steps(forgotten)},
	"a deleted volume is rolled back":  {of: trash + "pvc-1.1", command: "zfs rollback", prepare: steps(snapped, removed)},
	"a deleted volume goes at the end": {of: trash + "pvc-1.1", command: "zfs destroy", prepare: steps(snapped, removed, forgotten)},
}

func steps(all ...func(*testing.T, *zfs.Provisioner)) []func(*testing.T, *zfs.Provisioner) {
	return all
}

// replacements give the name of a dataset to another one. Only an administrator does that, and
// nothing tells the provisioner.
var replacements = map[string]func(zpools map[string]*zfstest.Zpool, name string){
	"a backup of it was received in its place": func(zpools map[string]*zfstest.Zpool, name string) {
		all := zpools["tank"].Datasets
		all[name] = all[name].Received()
	},
	"another dataset was made in its place": func(zpools map[string]*zfstest.Zpool, name string) {
		all := zpools["tank"].Datasets
		all[name] = &zfstest.Dataset{Volsize: unit, Data: 2 << 20, Props: map[string]string{}, Snapshots: map[string]*zfstest.Snapshot{}}
		if name == volumes+"pvc-1" {
			all[name].Snapshots["snap-1"] = &zfstest.Snapshot{Volsize: unit}
		}
	},
	"a backup of its zpool was imported under the name of the zpool": func(zpools map[string]*zfstest.Zpool, _ string) {
		other := &zfstest.Zpool{State: "ONLINE", Size: zpools["tank"].Size, Datasets: map[string]*zfstest.Dataset{}}
		for name, d := range zpools["tank"].Datasets {
			other.Datasets[name] = d.Received()
		}
		zpools["tank"] = other
	},
}

func TestNoDataIsTakenFromADatasetThatGotTheNameMeanwhile(t *testing.T) {
	for operation, l := range losses {
		for what, replace := range replacements {
			t.Run(operation+", and "+what, func(t *testing.T) {
				h := newHost()
				create(t, fresh(t, h), "pvc-1", 1)
				edit(h, volumes+"pvc-1", func(d *zfstest.Dataset) { d.Written = true })
				c := config(h)
				tidy := later(t, &c)
				p, _ := start(t, c)
				reported(t, p)
				for _, do := range l.prepare {
					do(t, p)
				}
				h.Edit(func(zpools map[string]*zfstest.Zpool) {
					replace(zpools, l.of)
					zpools["tank"].Datasets[l.of].Content = backup
				})
				h.Around = only(l.command, func(c run.Command, do func() ([]byte, error)) ([]byte, error) {
					t.Errorf("ZFS was asked: %s", c)
					return do()
				})
				for _, do := range l.do {
					do(t, p)
				}
				tidy(p)
				edit(h, l.of, func(d *zfstest.Dataset) {
					if d == nil || d.Content != backup {
						t.Errorf("the backup is %+v", d)
					}
				})
			})
		}
	}
}

// Berth does not know the guid of a dataset that it made since the last report.
func TestAVolumeMadeJustNowIsNotTakenForOneInAnotherZpool(t *testing.T) {
	h := newHost()
	p, _ := start(t, config(h))
	create(t, p, "pvc-1", 1)
	h.Edit(func(zpools map[string]*zfstest.Zpool) {
		replacements["a backup of its zpool was imported under the name of the zpool"](zpools, "")
	})
	if err := p.Delete(t.Context(), "pvc-1"); !errors.Is(err, provision.ErrUnavailable) || errors.Is(err, provision.ErrInUse) || !there(h, volumes+"pvc-1") {
		t.Errorf("deleting it: %v, want ErrUnavailable; there is %v", err, datasets(h))
	}
}

func TestNothingIsDestroyedWhileZFSDoesNotSayWhatItIs(t *testing.T) {
	h := newHost()
	p, _ := start(t, config(h))
	create(t, p, "pvc-1", 1)
	reported(t, p)
	asked := 0
	h.Around = only("zfs list", func(c run.Command, _ func() ([]byte, error)) ([]byte, error) {
		asked++
		return nil, strange(c)
	})
	for _, most := range []int{2, 1} { // at the second time the provisioner knows that ZFS does not answer
		asked = 0
		if err := p.Delete(t.Context(), "pvc-1"); !errors.Is(err, provision.ErrUnavailable) || !there(h, volumes+"pvc-1") {
			t.Errorf("deleting it: %v, want ErrUnavailable; there is %v", err, datasets(h))
		}
		if asked > most {
			t.Errorf("ZFS was asked %d times, want %d", asked, most)
		}
	}
	p.Wait()
	h.Around = nil
	if err := p.Delete(t.Context(), "pvc-1"); err != nil || there(h, volumes+"pvc-1") {
		t.Errorf("deleting it later: %v; there is %v", err, datasets(h))
	}
}
