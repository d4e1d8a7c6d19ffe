package lvm_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
	"berth.dev/berth/internal/run"
)

const kib = 1 << 10

// setArea has LVM report this area of a group's metadata, in bytes.
func setArea(host *lvmtest.Host, size, free int64) {
	host.Edit(func(groups map[string]*lvmtest.Group) string {
		g := groups[vg.Name]
		g.AreaSize, g.AreaFree = size, free
		g.Seqno++
		return g.Device
	})
}

func TestAGroupWithNearlyFullMetadataTakesNothingNewAndKeepsItsVolumes(t *testing.T) {
	for name, tc := range map[string]struct {
		size, free int64
		full       bool
	}{
		"LVM reports no area":                          {0, 0, false},
		"the area has room":                            {1020 * kib, 500 * kib, false},
		"the area has exactly the reserve":             {1020 * kib, 32 * kib, false},
		"the area has less than the reserve":           {1020 * kib, 32*kib - 1, true},
		"the area is full":                             {1020 * kib, 0, true},
		"a small area keeps a small reserve":           {188 * kib, 12 * kib, false},
		"a small area has less than the small reserve": {188 * kib, 11 * kib, true},
		"a large area keeps no larger reserve":         {16 << 20, 33 * kib, false},
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			host := thinHost()
			_, c := counted(host)
			p, _ := start(t, c)
			create(t, p, request("pvc-old", 2))
			create(t, p, requestIn(thin, "pvc-thin", 2))
			setArea(host, tc.size, tc.free)
			for _, pool := range []provision.PoolRef{vg, thin} {
				eventually(t, func() bool {
					said := poolOf(t, p, pool).Problem
					return (said != "") == tc.full && (!tc.full || strings.Contains(said, "vgcreate --metadatasize"))
				}, "the pool does not say how it is: "+pool.Name)
				_, err := p.Create(t.Context(), requestIn(pool, "pvc-new", 1))
				if tc.full != errors.Is(err, provision.ErrNoSpace) || !tc.full && err != nil {
					t.Errorf("creating in %s: %v", pool.Name, err)
				}
				setArea(host, tc.size, tc.free)
				if err := p.Delete(t.Context(), "pvc-new"); err != nil {
					t.Fatal(err)
				}
				settle(t, p)
			}
			_, err := p.Snapshot(t.Context(), provision.SnapshotRequest{ID: "snap-1", Volume: "pvc-thin"})
			if tc.full != errors.Is(err, provision.ErrNoSpace) || !tc.full && err != nil {
				t.Errorf("taking a snapshot: %v", err)
			}
			if _, err := p.Format(t.Context(), provision.FormatRequest{ID: "pvc-old", Filesystem: provision.Ext4}); err != nil {
				t.Errorf("formatting: %v", err)
			}
			if _, err := p.Expand(t.Context(), provision.ExpandRequest{ID: "pvc-old", Size: 3 * unit}); err != nil {
				t.Errorf("expanding: %v", err)
			}
			if err := p.Delete(t.Context(), "pvc-old"); err != nil {
				t.Errorf("deleting: %v", err)
			}
		}))
	}
}

// The next report may come minutes later, after a hundred volumes were made.
func TestOwnChangesAreReckonedWithUntilLVMTellsOfTheMetadata(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := lvmtest.NewHost(map[string]int64{vg.Name: 100})
		started, c := counted(host)
		p, _ := start(t, c)
		setArea(host, 1020*kib, 34*kib)
		synctest.Wait() // until it watches
		poolOf(t, p, vg)
		started.Take()
		for _, id := range []string{"pvc-1", "pvc-2", "pvc-3"} {
			create(t, p, request(id, 1))
		}
		if n := started.Take()["fullreport"]; n > 0 {
			t.Errorf("LVM was asked %d times while there is room by any reckoning", n)
		}
		create(t, p, request("pvc-4", 1)) // it may be one too many: LVM says that it is not
		if n := started.Take()["fullreport"]; n == 0 {
			t.Error("LVM was not asked when there may be no room")
		}
		setArea(host, 1020*kib, 31*kib)
		eventually(t, func() bool { return poolOf(t, p, vg).Problem != "" }, "what others did is not noticed")
		if _, err := p.Create(t.Context(), request("pvc-5", 1)); !errors.Is(err, provision.ErrNoSpace) {
			t.Errorf("got %v, want ErrNoSpace", err)
		}
	})
}

func TestAGroupIsNotReportedAsFullByReckoningAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := lvmtest.NewHost(map[string]int64{vg.Name: 100})
		_, c := counted(host)
		p, _ := start(t, c)
		setArea(host, 1020*kib, 34*kib)
		synctest.Wait() // until it watches
		poolOf(t, p, vg)
		for _, id := range []string{"pvc-1", "pvc-2", "pvc-3"} {
			create(t, p, request(id, 1))
		}
		if problem := poolOf(t, p, vg).Problem; problem != "" { // LVM says that there is room
			t.Errorf("the problem is %q", problem)
		}
	})
}

func TestARecordThatCannotBeWrittenDoesNotEndTheWiping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, c := wiping()
		c.WipeStep, c.WipeRecord = unit, unit
		host.Disturb(func(h *lvmtest.Host) {
			h.Around = func(c run.Command, do func() ([]byte, error)) ([]byte, error) {
				if slices.ContainsFunc(c.Args, func(a string) bool { return strings.HasPrefix(a, "berth.dev/wiped=") }) {
					return nil, exit5(c) // LVM has no room to note it
				}
				return do()
			}
		})
		p, _ := start(t, c)
		holdsSecret(t, host, p, request("pvc-1", 8))
		if err := p.Delete(t.Context(), "pvc-1"); err != nil {
			t.Fatal(err)
		}
		settle(t, p)
		if v := create(t, p, request("pvc-2", 100)); shows(host, v) {
			t.Error("something is left")
		}
	})
}

func TestNoChangeIsArchived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, c := wiping()
		var seen []string
		host.Disturb(func(h *lvmtest.Host) {
			h.Around = func(c run.Command, do func() ([]byte, error)) ([]byte, error) {
				if c.Operation != "lvmconfig" { // it only prints settings
					seen = append(seen, strings.Join(c.Args, " "))
				}
				return do()
			}
		})
		p, stop := start(t, c)
		create(t, p, request("pvc-1", 1))
		stop()
		for _, command := range seen {
			if !strings.Contains(command, "backup{archive=0}") {
				t.Errorf("started %s", command)
			}
		}
	})
}

func TestGroupsThatBerthMakesHaveAmpleRoomForMetadata(t *testing.T) {
	m := bareMachine("sda")
	var seen []string
	m.Disturb(func(h *lvmtest.Host) {
		h.Around = func(c run.Command, do func() ([]byte, error)) ([]byte, error) {
			if strings.HasPrefix(c.Operation, "vg") {
				seen = append(seen, c.Operation+" "+strings.Join(c.Args, " "))
			}
			return do()
		}
	})
	n := m.boot(t, m)
	mustEnsure(t, n, 0, provision.PoolMade, "")
	m.plug("sdb")
	mustEnsure(t, n, 0, provision.PoolGrown, "")
	if len(seen) != 2 {
		t.Errorf("started %q", seen)
	}
	for _, command := range seen {
		if !strings.Contains(command, "--metadatasize 16777216b") {
			t.Errorf("started %s", command)
		}
	}
}
