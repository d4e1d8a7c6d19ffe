package main

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/internal/poold"
	"berth.dev/berth/internal/provision/zfs"
	"berth.dev/berth/internal/provision/zfs/zfstest"
	"berth.dev/berth/internal/run"
)

// administrator is a machine that also does what Berth never asks of ZFS.
type administrator struct{ *zfstest.Host }

func (a administrator) Change(c run.Command) ([]byte, error) {
	name := c.Args[len(c.Args)-1]
	switch i := slices.Index(c.Args, reserve); {
	case c.Args[0] == "promote":
		a.promote(name)
		return nil, nil
	case c.Args[0] == "clone" && i > 0:
		c.Args = slices.Delete(slices.Clone(c.Args), i-1, i+1)
		if out, err := a.Host.Change(c); err != nil {
			return out, err
		}
		c = zfsCommand("set", reserve, name)
	}
	return a.Host.Change(c)
}

// promote gives the snapshots of a clone's origin to the clone.
func (a administrator) promote(name string) {
	a.Edit(func(zpools map[string]*zfstest.Zpool) {
		zpool, _, _ := strings.Cut(name, "/")
		promoted := zpools[zpool].Datasets[name]
		from, at, _ := strings.Cut(promoted.Origin, "@")
		origin := zpools[zpool].Datasets[from]
		promoted.Snapshots, origin.Snapshots = origin.Snapshots, map[string]*zfstest.Snapshot{}
		promoted.Origin, origin.Origin = "", name+"@"+at
	})
}

// playedZpools are a node's disks with a zpool for each side.
func playedZpools(t *testing.T) (disksOf, *zfstest.Host, *zfs.Provisioner) {
	t.Helper()
	zpools := map[string]int64{}
	for side := range disks {
		zpools[poolName(side)] = 4 << 30
	}
	host := zfstest.NewHost(zpools)
	for _, area := range []string{freshArea, trashArea} {
		host.PutFilesystem(poolName(sameSide)+"/"+area, nil)
	}
	d := newDisks(administrator{host})
	p, err := zfs.New(zfs.Config{Runner: d.counter, Devices: alone{host, poolName(socketSide), d.bare}, Mkfs: noMkfs})
	if err != nil {
		t.Fatal(err)
	}
	d.local = poold.NewLocal(p, nil)
	d.remote = d.local
	return d, host, p
}

// datasetsOf are the properties of what a side has in its zpool, and of the snapshots of that,
// in which the side is not named. Its areas are left out.
func datasetsOf(host *zfstest.Host, side string) map[string]map[string]string {
	all := map[string]map[string]string{}
	host.Edit(func(zpools map[string]*zfstest.Zpool) {
		for name, d := range zpools[poolName(side)].Datasets {
			if !strings.Contains(name, "pvc-") || rehearsed(name) {
				continue
			}
			name = strings.ReplaceAll(name, side, "SIDE")
			all[name] = withoutSide(d.Props, side)
			for at, s := range d.Snapshots {
				all[name+"@"+strings.ReplaceAll(at, side, "SIDE")] = withoutSide(s.Props, side)
			}
		}
	})
	return all
}

func withoutSide(props map[string]string, side string) map[string]string {
	same := map[string]string{}
	for k, v := range props {
		same[k] = strings.ReplaceAll(v, side, "SIDE")
	}
	return same
}

func playZpools(t *testing.T, pool string, operations []string) (*zfstest.Host, []processes) {
	t.Helper()
	d, host, _ := playedZpools(t)
	s := played(pool, operations, []string{bareSide, socketSide, sameSide}, d)
	var err error
	if s.sides, err = sidesOf(t.Context(), s, d); err != nil {
		t.Fatal(err)
	}
	_, started, err := s.measure(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	return host, started
}

func TestWhatIsTypedComesToTheVolumesThatBerthMakes(t *testing.T) {
	for _, pool := range []string{zvol, dataset} {
		t.Run(pool, func(t *testing.T) {
			host, started := playZpools(t, pool, []string{create, snapshot, clone})
			made := datasetsOf(host, socketSide)
			if len(made) != 4+2+2+2 { // volumes, snapshots, clones and what they are of
				t.Errorf("Berth made %v", slices.Sorted(maps.Keys(made)))
			}
			for _, side := range []string{bareSide, sameSide} {
				if diff := cmp.Diff(made, datasetsOf(host, side)); diff != "" {
					t.Errorf("by %s instead of %s:\n%s", side, socketSide, diff)
				}
			}
			host.Edit(func(zpools map[string]*zfstest.Zpool) {
				theirs := zpools[poolName(bareSide)].Datasets[poolName(bareSide)+"/"+cloneID(bareSide, 1)].Refreservation
				ours := zpools[poolName(socketSide)].Datasets[poolName(socketSide)+"/"+cloneID(socketSide, 1)].Refreservation
				if theirs != ours || ours < volumeSize {
					t.Errorf("%d bytes are reserved for a clone, and %d by Berth", theirs, ours)
				}
			})
			if got := started[0].each(); got != "1 zfs create, 1 zfs rename" {
				t.Errorf("to create a volume Berth started %s", got)
			}
		})
	}
}

func TestCopiesStayWhenWhatTheyAreOfIsDeleted(t *testing.T) {
	for _, pool := range []string{zvol, dataset} {
		t.Run(pool, func(t *testing.T) {
			host, _ := playZpools(t, pool, dependent)
			for _, side := range []string{bareSide, socketSide, sameSide} {
				var left []string
				for name := range datasetsOf(host, side) {
					if !strings.Contains(name, trashArea) && !strings.Contains(name, "@") {
						left = append(left, name)
					}
				}
				slices.Sort(left)
				if want := []string{"bench-SIDE/pvc-SIDE-0-clone", "bench-SIDE/pvc-SIDE-1-clone"}; !slices.Equal(left, want) {
					t.Errorf("%s has left %v, want %v", side, left, want)
				}
			}
		})
	}
}
