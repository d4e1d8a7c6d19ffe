package main

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/internal/poold"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/lvm"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
)

var errNoMkfs = errors.New("nothing is formatted here")

func noMkfs(context.Context, provision.Volume, string, string) error { return errNoMkfs }

// played returns a series of four volumes on a simulated machine.
func played(pool string, operations, sides []string, d disksOf) series {
	return series{
		pool: pool, atOnce: 2, operations: operations, names: sides, many: 4, few: 2,
		counts: d.counter.Take, tidying: d.tidying, settle: func() error { return nil },
	}
}

// playedGroups returns a simulated node's disks with volume groups and a thin pool for each side.
func playedGroups(t *testing.T) (disksOf, *lvmtest.Host) {
	t.Helper()
	groups := map[string]int64{}
	for side := range disks {
		groups[poolName(side)] = 1000
	}
	host := lvmtest.NewHost(groups)
	for side := range disks {
		host.AddThinPool(poolName(side), "pool", 500)
	}
	d := newDisks(host)
	p, err := lvm.New(lvm.Config{Runner: d.counter, Devices: host, Mkfs: noMkfs})
	if err != nil {
		t.Fatal(err)
	}
	d.local = poold.NewLocal(p, nil)
	d.remote = d.local
	return d, host
}

// rehearsed says whether a volume was made before the measurement.
func rehearsed(name string) bool {
	return strings.Contains(name, model) || strings.Contains(name, "100000")
}

// volumesOf returns the volumes of a side with their tags, without the side's name.
func volumesOf(host *lvmtest.Host, side string) map[string][]string {
	all := map[string][]string{}
	host.Edit(func(groups map[string]*lvmtest.Group) string {
		for name, v := range groups[poolName(side)].Volumes {
			if rehearsed(name) || v.Thin != nil {
				continue
			}
			var tags []string
			for _, tag := range v.Tags {
				if !strings.Contains(tag, "taken=") { // it depends on the clock
					tags = append(tags, strings.ReplaceAll(tag, side, "SIDE"))
				}
			}
			all[strings.ReplaceAll(name, side, "SIDE")] = tags
		}
		return ""
	})
	return all
}

func TestTheBareSideMakesTheSameVolumesAsBerth(t *testing.T) {
	for name, pool := range map[string]struct {
		kind       string
		operations []string
		want       int
	}{
		"thick volumes":                      {thick, []string{create}, 4},
		"thin volumes, snapshots and clones": {thin, []string{create, snapshot, clone}, 8},
		"independent thin volumes":           {thin, independent, 4},
		"uncopied thick volumes":             {thick, uncopied, 2},
	} {
		t.Run(name, func(t *testing.T) {
			d, host := playedGroups(t)
			s := played(pool.kind, pool.operations, []string{bareSide, socketSide, localSide}, d)
			var err error
			if s.sides, err = sidesOf(t.Context(), s, d); err != nil {
				t.Fatal(err)
			}
			samples, started, err := s.measure(t.Context(), 2)
			if err != nil {
				t.Fatal(err)
			}
			made := volumesOf(host, socketSide)
			if len(made) != pool.want {
				t.Errorf("Berth made %v", slices.Collect(maps.Keys(made)))
			}
			for _, side := range []string{bareSide, localSide} {
				if diff := cmp.Diff(made, volumesOf(host, side)); diff != "" {
					t.Errorf("by %s instead of %s:\n%s", side, socketSide, diff)
				}
			}
			for _, one := range samples {
				if len(one.Seconds) != 2 {
					t.Errorf("%s by %s has %v", one.title(), one.Side, one.Seconds)
				}
			}
			for _, p := range started {
				if p.Operations == 0 || len(p.Started) != 1 || !strings.HasPrefix(p.each(p.Started), "1 lv") || len(p.Followed) > 0 {
					t.Errorf("%s started %+v", p.Operation, p)
				}
			}
		})
	}
}

func TestEachOperationIsOnTheVolumesThatItNeeds(t *testing.T) {
	s := series{many: 100, few: 12}
	for name, tc := range map[string]struct {
		operation, side string
		from, to        int
	}{
		"Berth makes all volumes":                            {create, socketSide, 0, 100},
		"the bare commands make all volumes":                 {create, bareSide, 0, 100},
		"Berth in the process makes only the needed volumes": {create, localSide, 0, 24},
		"Berth copies some volumes":                          {clone, socketSide, 0, 12},
		"the bare commands delete the copied volumes":        {deleteCopied, bareSide, 0, 12},
		"Berth in the process deletes uncopied volumes":      {deletion, localSide, 12, 24},
	} {
		t.Run(name, func(t *testing.T) {
			if from, to := s.span(tc.operation, tc.side); from != tc.from || to != tc.to {
				t.Errorf("%s by %s is on volumes %d to %d, want %d to %d", tc.operation, tc.side, from, to, tc.from, tc.to)
			}
		})
	}
}

func TestEachRoundHasAsManyOperationsAsAreDoneAtOnce(t *testing.T) {
	for _, o := range []options{{volumes: 100, rounds: 4, atOnce: 8}, {volumes: 2, rounds: 2, atOnce: 8}} {
		for _, c := range slices.Concat(onLVM, inZpools) {
			s := c.series(o)
			if s.many < 2*s.few || s.few < o.rounds || c.atOnce && s.few != o.rounds*s.atOnce || !c.atOnce && s.many < o.volumes {
				t.Errorf("%s with %d at once has %d volumes and %d of them copied", c.pool, s.atOnce, s.many, s.few)
			}
		}
	}
}
