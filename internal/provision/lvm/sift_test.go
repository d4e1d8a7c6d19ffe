package lvm_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/lvm/group"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
)

// published is a loop device as the kubelet makes one for a raw block volume.
var published = group.Block{Backing: "/dev/dm-7", Over: "dm-7"}

// putGroup adds a group with volumes of these ids, which bear the tags of formatted ones.
func putGroup(host *lvmtest.Host, key, name, uuid, device string, ids ...string) {
	host.Edit(func(groups map[string]*lvmtest.Group) string {
		g := &lvmtest.Group{Name: name, UUID: uuid, Device: device, Extents: 100, Seqno: 50, Volumes: map[string]*lvmtest.Volume{}}
		for _, id := range ids {
			g.Volumes[id] = &lvmtest.Volume{Extents: 4, Active: true, Signature: "ext4",
				Tags: []string{"berth.dev/volume=" + id, "berth.dev/fs=ext4"}}
		}
		groups[key] = g
		return device
	})
}

// whatIs returns the ids of a group's volumes, and its number, as they are on its disk.
func whatIs(host *lvmtest.Host, key string) (ids []string, seqno uint64) {
	host.Edit(func(groups map[string]*lvmtest.Group) string {
		for id := range groups[key].Volumes {
			ids = append(ids, id)
		}
		seqno = groups[key].Seqno
		return ""
	})
	slices.Sort(ids)
	return ids, seqno
}

// report returns the names of the pools that are reported without a problem, and the problems of
// the others by name.
func report(t *testing.T, p provision.Provisioner) (fine []string, troubled map[string]string) {
	t.Helper()
	pools, err := p.Report(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	troubled = map[string]string{}
	for _, pool := range pools {
		if pool.Problem == "" {
			fine = append(fine, pool.Name)
		} else {
			troubled[pool.Name] = pool.Problem
		}
	}
	return fine, troubled
}

// blindHost sets whether LVM ignores its filters and so reads devices that pods write to. Real LVM
// does so for a moment when a device appears while a command begins.
func blindHost(host *lvmtest.Host, blind bool) {
	host.Disturb(func(h *lvmtest.Host) { h.IgnoresFilters = blind })
}

func TestAVolumeGroupWrittenByAPodIsNotTheNodes(t *testing.T) {
	for name, blind := range map[string]bool{"LVM obeys the filter": false, "LVM ignores the filter": true} {
		t.Run(name, inBubble(func(t *testing.T) {
			host := lvmtest.NewHost(map[string]int64{vg.Name: 100})
			_, c := counted(host)
			p, stop := start(t, c)
			create(t, p, request("pvc-1", 8))
			host.Attach("loop5", published)
			host.Attach("loop6", published)
			blindHost(host, blind)
			putGroup(host, "a-first", vg.Name, "theirs", "/dev/loop5", "pvc-1", "pvc-2")
			putGroup(host, "evil", "evil", "evils", "/dev/loop6", "pvc-1", "pvc-3")
			host.Edit(func(groups map[string]*lvmtest.Group) string { // volumes that an agent would activate, wipe or fill
				for tag, id := range map[string]string{"volume": "pvc-idle", "wiping": "pvc-wiped", "copying": "pvc-copied"} {
					groups["evil"].Volumes[id] = &lvmtest.Volume{Extents: 1, Tags: []string{"berth.dev/" + tag + "=" + id}, Suspended: tag == "wiping"}
				}
				return "/dev/loop6"
			})
			for _, restarted := range []bool{false, true} {
				if restarted {
					stop()
					p, _ = start(t, c)
				}
				if fine, troubled := report(t, p); !slices.Equal(fine, []string{vg.Name}) || len(troubled) > 0 {
					t.Fatalf("reported %v and %v, want %s alone", fine, troubled, vg.Name)
				}
				if v, err := p.Get(t.Context(), "pvc-1"); err != nil || v.Content.Source != "/dev/"+vg.Name+"/pvc-1" || v.Filesystem != "" || v.Problem != "" {
					t.Errorf("got %+v, %v", v, err)
				}
				for _, id := range []string{"pvc-2", "pvc-3"} {
					if v, err := p.Get(t.Context(), id); !errors.Is(err, provision.ErrNotFound) {
						t.Errorf("got %+v, %v of what a pod wrote", v, err)
					}
				}
			}
			if !blind { // as long as LVM sees both groups it changes neither
				create(t, p, request("pvc-4", 8))
				if err := p.Delete(t.Context(), "pvc-1"); err != nil {
					t.Error(err)
				}
				settle(t, p)
			}
			p.Wait()
			for key, want := range map[string]int{"a-first": 2, "evil": 5} {
				if ids, seqno := whatIs(host, key); len(ids) != want || seqno != 50 {
					t.Errorf("group %s was changed: %v, %d", key, ids, seqno)
				}
			}
			host.On("/dev/evil/pvc-idle", func(v *lvmtest.Volume) {
				if v.Active {
					t.Error("a volume that a pod wrote was activated")
				}
			})
			host.On("/dev/evil/pvc-wiped", func(v *lvmtest.Volume) {
				if !v.Suspended {
					t.Error("what a pod wrote was resumed")
				}
			})
			var messages []string
			for _, w := range p.Warnings() {
				messages = append(messages, w.Message)
			}
			if all := strings.Join(messages, "\n"); blind && (!strings.Contains(all, "evil (evils) on /dev/loop6") || !strings.Contains(all, "(theirs) on /dev/loop5")) {
				t.Errorf("warned of %q", all)
			}
		}))
	}
}

func TestAGroupOnALoopDeviceOverAFileIsTheNodes(t *testing.T) {
	host := lvmtest.NewHost(nil)
	host.Attach("loop0", group.Block{Backing: "/srv/vg.img"})
	putGroup(host, "vg-file", "vg-file", "u", "/dev/loop0", "pvc-1")
	_, c := counted(host)
	p, _ := start(t, c)
	if fine, _ := report(t, p); !slices.Equal(fine, []string{"vg-file"}) {
		t.Errorf("reported %v", fine)
	}
	if _, err := p.Expand(t.Context(), provision.ExpandRequest{ID: "pvc-1", Size: 8 * unit}); err != nil {
		t.Error(err)
	}
}

// untouched fails unless every operation on a volume is refused with an error of this class.
func untouched(t *testing.T, p provision.Full, id string, class error) {
	t.Helper()
	_, expanding := p.Expand(t.Context(), provision.ExpandRequest{ID: id, Size: 64 * unit})
	_, formatting := p.Format(t.Context(), provision.FormatRequest{ID: id, Filesystem: provision.XFS})
	_, copying := p.Snapshot(t.Context(), provision.SnapshotRequest{ID: "snap-1", Volume: id})
	for what, err := range map[string]error{"deleting": p.Delete(t.Context(), id), "expanding": expanding, "formatting": formatting, "a snapshot": copying} {
		if !errors.Is(err, class) {
			t.Errorf("%s %s: %v, want %v", what, id, err, class)
		}
	}
}

func TestTwoGroupsOfOneNameAreNeitherBelievedNorChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := lvmtest.NewHost(map[string]int64{vg.Name: 100})
		_, c := counted(host)
		p, stop := start(t, c)
		mine := create(t, p, request("pvc-1", 8))
		putGroup(host, "a-other", vg.Name, "other-node", "/dev/sdz", "pvc-1", "pvc-9")
		_, seqno := whatIs(host, vg.Name)
		eventually(t, func() bool { _, troubled := report(t, p); return troubled[vg.Name] != "" }, "no trouble is reported")
		_, troubled := report(t, p)
		for _, want := range []string{vg.Name + "-uuid on /dev/disk-" + vg.Name, "other-node on /dev/sdz"} {
			if !strings.Contains(troubled[vg.Name], want) {
				t.Errorf("the problem %q does not name %q", troubled[vg.Name], want)
			}
		}
		if v, err := p.Get(t.Context(), "pvc-1"); err != nil || v.Problem == "" || v.Size != mine.Size {
			t.Errorf("what was known is %+v, %v; want it with a problem", v, err)
		}
		untouched(t, p, "pvc-1", provision.ErrUnavailable)
		if _, err := p.Create(t.Context(), request("pvc-2", 1)); !errors.Is(err, provision.ErrUnavailable) {
			t.Errorf("creating: %v", err)
		}
		stop()
		p, _ = start(t, c)
		for _, id := range []string{"pvc-1", "pvc-9", "pvc-new"} {
			if _, err := p.Get(t.Context(), id); !errors.Is(err, provision.ErrUnavailable) {
				t.Errorf("%s after a restart: %v, want %v: it may be there", id, err, provision.ErrUnavailable)
			}
			if err := p.Delete(t.Context(), id); !errors.Is(err, provision.ErrUnavailable) {
				t.Errorf("deleting %s after a restart: %v, want %v", id, err, provision.ErrUnavailable)
			}
		}
		if _, now := whatIs(host, vg.Name); now != seqno {
			t.Error("the group was changed")
		}
		if _, now := whatIs(host, "a-other"); now != 50 {
			t.Error("the other group was changed")
		}
		host.Edit(func(groups map[string]*lvmtest.Group) string {
			delete(groups, "a-other")
			return "/dev/sdz"
		})
		eventually(t, func() bool { fine, _ := report(t, p); return slices.Equal(fine, []string{vg.Name}) }, "the group is not believed again")
		if got, err := p.Get(t.Context(), "pvc-1"); err != nil || got != mine {
			t.Errorf("got %+v, %v; want %+v", got, err, mine)
		}
	})
}

func TestAnotherGroupDoesNotTakeThePlaceOfOneThatHoldsVolumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := lvmtest.NewHost(map[string]int64{vg.Name: 100})
		_, c := counted(host)
		p, _ := start(t, c)
		mine := create(t, p, request("pvc-1", 8))
		var away *lvmtest.Group
		host.Edit(func(groups map[string]*lvmtest.Group) string {
			away = groups[vg.Name]
			delete(groups, vg.Name)
			return away.Device
		})
		putGroup(host, vg.Name, vg.Name, "other-node", "/dev/sdz", "pvc-1", "pvc-9")
		eventually(t, func() bool { _, troubled := report(t, p); return strings.Contains(troubled[vg.Name], "other-node") }, "no trouble is reported")
		if v, err := p.Get(t.Context(), "pvc-1"); err != nil || v.Problem == "" || v.Size != mine.Size {
			t.Errorf("got %+v, %v; want what was known, with a problem", v, err)
		}
		untouched(t, p, "pvc-1", provision.ErrUnavailable)
		if ids, seqno := whatIs(host, vg.Name); len(ids) != 2 || seqno != 50 {
			t.Errorf("the other group was changed: %v, %d", ids, seqno)
		}
		host.Edit(func(groups map[string]*lvmtest.Group) string {
			groups[vg.Name] = away
			return away.Device
		})
		eventually(t, func() bool { fine, _ := report(t, p); return slices.Equal(fine, []string{vg.Name}) }, "the group is not believed again")
	})
}

func TestAGroupThatHeldNothingMayBeMadeAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := lvmtest.NewHost(map[string]int64{vg.Name: 100})
		_, c := counted(host)
		p, _ := start(t, c)
		report(t, p)
		putGroup(host, vg.Name, vg.Name, "made anew", "/dev/sdz")
		host.PutForeign(vg.Name, "theirs", unit)
		eventually(t, func() bool { return poolOf(t, p, vg).Foreign == unit }, "the new group is not seen")
		create(t, p, request("pvc-1", 8))
		if fine, troubled := report(t, p); !slices.Equal(fine, []string{vg.Name}) {
			t.Errorf("reported %v and %v", fine, troubled)
		}
	})
}

func TestOneIDInTwoGroupsIsTouchedInNeither(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := lvmtest.NewHost(map[string]int64{vg.Name: 100})
		_, c := counted(host)
		p, _ := start(t, c)
		mine := create(t, p, request("pvc-1", 8))
		create(t, p, request("pvc-2", 8))
		putGroup(host, "vgclone", "vgclone", "clone", "/dev/sdz", "pvc-1")
		_, seqno := whatIs(host, vg.Name)
		eventually(t, func() bool { fine, _ := report(t, p); return len(fine) == 2 }, "the copy is not reported")
		for range 20 {
			if v, err := p.Get(t.Context(), "pvc-1"); !errors.Is(err, provision.ErrConflict) || !strings.Contains(err.Error(), vg.Name+"/pvc-1") || !strings.Contains(err.Error(), "vgclone/pvc-1") {
				t.Fatalf("got %+v, %v; want a conflict that names both", v, err)
			}
		}
		untouched(t, p, "pvc-1", provision.ErrConflict)
		if _, err := p.Create(t.Context(), request("pvc-1", 8)); !errors.Is(err, provision.ErrConflict) {
			t.Errorf("creating: %v", err)
		}
		for _, pool := range []string{vg.Name, "vgclone"} {
			for _, v := range poolOf(t, p, provision.PoolRef{Type: provision.LVM, Name: pool}).Volumes {
				if (v.Problem != "") != (v.ID == "pvc-1") {
					t.Errorf("%+v in pool %s", v, pool)
				}
			}
		}
		if ids, now := whatIs(host, vg.Name); now != seqno || len(ids) != 2 {
			t.Error("the group was changed")
		}
		if _, now := whatIs(host, "vgclone"); now != 50 {
			t.Error("the copy was changed")
		}
		host.Edit(func(groups map[string]*lvmtest.Group) string {
			delete(groups["vgclone"].Volumes, "pvc-1")
			groups["vgclone"].Seqno++
			return "/dev/sdz"
		})
		eventually(t, func() bool {
			report(t, p)
			v, err := p.Get(t.Context(), "pvc-1")
			return err == nil && v == mine
		}, "the volume is not usable again")
	})
}

func TestAGroupThatIsRenamedIsNotMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := lvmtest.NewHost(map[string]int64{vg.Name: 100})
		_, c := counted(host)
		p, _ := start(t, c)
		create(t, p, request("pvc-1", 8))
		host.Edit(func(groups map[string]*lvmtest.Group) string {
			g := groups[vg.Name]
			delete(groups, vg.Name)
			g.UUID, g.Name, g.Seqno = vg.Name+"-uuid", "renamed", g.Seqno+1
			groups["renamed"] = g
			return g.Device
		})
		eventually(t, func() bool {
			fine, troubled := report(t, p)
			return slices.Equal(fine, []string{"renamed"}) && len(troubled) == 0
		}, "the group is not reported by its new name alone")
		for range 20 {
			if v, err := p.Get(t.Context(), "pvc-1"); err != nil || v.Pool.Name != "renamed" || v.Problem != "" {
				t.Fatalf("got %+v, %v", v, err)
			}
		}
	})
}
