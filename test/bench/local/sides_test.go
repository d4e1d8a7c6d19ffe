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
	"berth.dev/berth/internal/provision/lvm"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
	"berth.dev/berth/internal/run"
)

// playedDisks are a node's with a pool of a kind for each side.
func playedDisks(t *testing.T) (disksOf, *lvmtest.Host) {
	t.Helper()
	groups := map[string]int64{}
	for side := range disks {
		groups[groupOf(side)] = 1000
	}
	host := lvmtest.NewHost(groups)
	for side := range disks {
		host.AddThinPool(groupOf(side), "pool", 500)
	}
	d := newDisks(host)
	p, err := lvm.New(lvm.Config{Runner: d.counter, Devices: host, Mkfs: func(context.Context, string, string, string) error { return errors.ErrUnsupported }})
	if err != nil {
		t.Fatal(err)
	}
	d.local = poold.NewLocal(p, nil)
	d.remote = d.local
	return d, host
}

// volumesOf are the volumes of a side with their tags, in which the side is not named.
func volumesOf(host *lvmtest.Host, side string) map[string][]string {
	all := map[string][]string{}
	host.Edit(func(groups map[string]*lvmtest.Group) string {
		for name, v := range groups[groupOf(side)].Volumes {
			if strings.Contains(name, model) || strings.Contains(name, "1000000") || v.Thin != nil {
				continue
			}
			var tags []string
			for _, tag := range v.Tags {
				if !strings.Contains(tag, "taken=") { // the clock's
					tags = append(tags, strings.ReplaceAll(tag, side, "SIDE"))
				}
			}
			all[strings.ReplaceAll(name, side, "SIDE")] = tags
		}
		return ""
	})
	return all
}

func TestTheBareSideMakesWhatBerthMakes(t *testing.T) {
	for name, pool := range map[string]struct {
		kind       string
		operations []string
		want       int
	}{
		"thick volumes":                      {thick, []string{create}, 4},
		"thin volumes, snapshots and clones": {thin, []string{create, snapshot, clone}, 12},
		"nothing is left but clones":         {thin, []string{create, snapshot, clone, deletion, deleteSnapshot}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			d, host := playedDisks(t)
			s := series{pool: pool.kind, atOnce: 2, operations: pool.operations, names: []string{bareSide, socketSide, localSide}, counts: d.counter.Take}
			var err error
			if s.sides, err = sidesOf(t.Context(), s, d); err != nil {
				t.Fatal(err)
			}
			samples, started, err := s.measure(t.Context(), 4, 2)
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
				if p.Operations != 8 || len(p.Started) != 1 || !strings.HasPrefix(p.each(), "1 lv") {
					t.Errorf("%s started %+v", p.Operation, p)
				}
			}
		})
	}
}

func TestAnOperationThatStartsNothingIsComparedWithNothing(t *testing.T) {
	d, _ := playedDisks(t)
	through := berth{name: model, node: d.remote, pool: poolOf(thick, socketSide)}
	if err := through.do(t.Context(), create, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := learn(t.Context(), through, d.changes, []string{create}); err == nil || !strings.Contains(err.Error(), "0 commands") {
		t.Errorf("learnt from what is there already: %v", err)
	}
}

func TestACommandIsRetargetedWholly(t *testing.T) {
	c := run.Command{Operation: "lvcreate", Program: "lvm", Args: []string{
		"--name", cloneID(model, 0), "--addtag", "berth.dev/source=" + volumeID(model, 0), "--addtag", "berth.dev/label/claim=data-0", groupOf(socketSide) + "/" + volumeID(model, 0)}}
	got := retarget(c, 17)
	want := []string{"--name", "pvc-bare-17-clone", "--addtag", "berth.dev/source=pvc-bare-17", "--addtag", "berth.dev/label/claim=data-17", "vg-bare/pvc-bare-17"}
	if diff := cmp.Diff(want, got.Args); diff != "" {
		t.Error(diff)
	}
	if c.Args[1] != cloneID(model, 0) {
		t.Error("the template was changed")
	}
}
