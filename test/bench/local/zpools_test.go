package main

import (
	"context"
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

// administrator is a machine that also knows a ZFS command that Berth never uses.
type administrator struct{ *zfstest.Host }

func (a administrator) Change(c run.Command) ([]byte, error) {
	if c.Args[0] == "promote" {
		a.promote(c.Args[len(c.Args)-1])
		return nil, nil
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

// playedZpools returns a simulated node's disks with a zpool for each side. Berth tidies its
// zpool when the test waits for that, and not before.
func playedZpools(t *testing.T) (disksOf, *zfstest.Host, *zfs.Provisioner) {
	t.Helper()
	zpools := map[string]int64{}
	for side := range disks {
		zpools[poolName(side)] = 4 << 30
	}
	host := zfstest.NewHost(zpools)
	d := newDisks(administrator{host})
	moments, over := make(chan struct{}), make(chan struct{})
	p, err := zfs.New(zfs.Config{
		Runner: d.counter, Devices: alone{host, poolName(socketSide), d.bare}, Mkfs: noMkfs,
		Pause: func(context.Context) {
			select {
			case moments <- struct{}{}:
			case <-over:
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { close(over); p.Wait() })
	d.tidying.wait = func() {
		done := make(chan struct{})
		go func() { p.Wait(); close(done) }()
		for {
			select {
			case <-moments:
			case <-done:
				return
			}
		}
	}
	d.local = poold.NewLocal(p, nil)
	d.remote = d.local
	return d, host, p
}

// trashArea is the filesystem in a pool in which Berth keeps volumes that were deleted.
const trashArea = "berth-trash"

// datasetsOf returns the properties of the datasets of a side in its zpool, and of their
// snapshots, without the side's name. The place of the volumes in the zpool makes no difference.
func datasetsOf(host *zfstest.Host, side string) map[string]map[string]string {
	all := map[string]map[string]string{}
	host.Edit(func(zpools map[string]*zfstest.Zpool) {
		for name, d := range zpools[poolName(side)].Datasets {
			if !strings.Contains(name, "pvc-") || rehearsed(name) {
				continue
			}
			name = strings.ReplaceAll(strings.Replace(name, "/"+volumesArea+"/", "/", 1), side, "SIDE")
			all[name] = withoutSide(d.Props, side)
			for at, s := range d.Snapshots {
				all[name+"@"+strings.ReplaceAll(at, side, "SIDE")] = withoutSide(s.Props, side)
			}
		}
	})
	return all
}

// withoutSide removes the side's name, and the times of snapshots: a typed command contains
// the time of the model's snapshot, which is another second than that of Berth's.
func withoutSide(props map[string]string, side string) map[string]string {
	same := map[string]string{}
	for k, v := range props {
		if k != "berth.dev:taken" {
			same[k] = strings.ReplaceAll(v, side, "SIDE")
		}
	}
	return same
}

func playZpools(t *testing.T, pool string, operations []string) (*zfstest.Host, []processes) {
	t.Helper()
	d, host, _ := playedZpools(t)
	return host, measureAll(t, played(pool, operations, both, d), d)
}

// measureAll measures a series with its sides in two rounds.
func measureAll(t *testing.T, s series, d disksOf) (started []processes) {
	t.Helper()
	var err error
	if s.sides, err = sidesOf(t.Context(), s, d); err != nil {
		t.Fatal(err)
	}
	if _, started, err = s.measure(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	return started
}

func TestTypedCommandsMakeTheSameVolumesAsBerth(t *testing.T) {
	for _, pool := range []string{zvol, dataset} {
		t.Run(pool, func(t *testing.T) {
			host, _ := playZpools(t, pool, []string{create, snapshot, clone})
			made := datasetsOf(host, socketSide)
			if len(made) != 4+2+2+2 { // volumes, snapshots, clones and their origins
				t.Errorf("Berth made %v", slices.Sorted(maps.Keys(made)))
			}
			if diff := cmp.Diff(made, datasetsOf(host, bareSide)); diff != "" {
				t.Errorf("by %s instead of %s:\n%s", bareSide, socketSide, diff)
			}
			host.Edit(func(zpools map[string]*zfstest.Zpool) {
				theirs := zpools[poolName(bareSide)].Datasets[poolName(bareSide)+"/"+cloneID(bareSide, 1)].Refreservation
				ours := zpools[poolName(socketSide)].Datasets[poolName(socketSide)+"/"+volumesArea+"/"+cloneID(socketSide, 1)].Refreservation
				if theirs != ours || ours < volumeSize {
					t.Errorf("%d bytes are reserved for a clone, and %d by Berth", theirs, ours)
				}
			})
		})
	}
}

func TestCopiesStayWhenTheirSourceIsDeleted(t *testing.T) {
	for _, pool := range []string{zvol, dataset} {
		t.Run(pool, func(t *testing.T) {
			host, _ := playZpools(t, pool, dependent)
			for _, side := range both {
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

func TestFollowUpCommandsAreCountedApartFromAwaitedOnes(t *testing.T) {
	want := map[string][2]string{
		create:         {"1 zfs create", "0"},
		snapshot:       {"1 zfs snapshot", "1 zfs list"},
		clone:          {"1 zfs clone, 1 zfs snapshot", "1 zfs destroy, 1 zfs list"},
		deletion:       {"1 zfs destroy, 1 zfs list", "0"},
		deleteCopied:   {"1 zfs list, 1 zfs rename", "1 zfs list, 1 zfs rollback, 1 zfs set"},
		deleteSnapshot: {"1 zfs destroy, 1 zfs list", "0"},
	}
	for _, pool := range []string{zvol, dataset} {
		t.Run(pool, func(t *testing.T) {
			_, started := playZpools(t, pool, dependent)
			got := map[string][2]string{}
			for _, p := range started {
				got[p.Operation] = [2]string{p.each(p.Started), p.each(p.Followed)}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("awaited, and following (-want +got):\n%s", diff)
			}
		})
	}
}
