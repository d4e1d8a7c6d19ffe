package lvm_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/lvm"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
	"berth.dev/berth/internal/run"
)

var vgB = provision.PoolRef{Type: provision.LVM, Name: "vg-b"}

// unnoticed changes the groups as others do, with no event that tells of it.
func unnoticed(host *lvmtest.Host, change func(groups map[string]*lvmtest.Group)) {
	host.Edit(func(groups map[string]*lvmtest.Group) string {
		change(groups)
		return ""
	})
}

func TestAPoolIsFoundThoughItAppearedUnnoticed(t *testing.T) {
	host, p := unwatched(t)
	unnoticed(host, func(groups map[string]*lvmtest.Group) {
		groups["vg-b"] = &lvmtest.Group{Name: "vg-b", Device: "/dev/sdb", Extents: 10, Volumes: map[string]*lvmtest.Volume{}}
	})
	create(t, p, requestIn(vgB, "pvc-1", 2))
}

func TestAVolumeInNoPoolOfLVMsIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := over(t, thinHost())
		for _, tc := range []struct {
			pool provision.PoolRef
			says string
		}{
			{provision.PoolRef{Type: provision.ZFS, Name: "zfs:tank"}, "zfs:tank"},
			{provision.PoolRef{Type: provision.LVM, Name: "zfs:tank"}, "type LVM"},
			{provision.PoolRef{Type: provision.LVM, Name: thin.Name}, "type LVM"},
			{provision.PoolRef{Type: provision.LVMThin, Name: vg.Name}, "type LVMThin"},
			{vgB, "no volume group is named vg-b"},
			{provision.PoolRef{Type: provision.LVMThin, Name: "vg-b/pool"}, "no volume group is named vg-b"},
			{provision.PoolRef{Type: provision.LVMThin, Name: "vg-a/other"}, "no thin pool is named vg-a/other"},
		} {
			if _, err := p.Create(t.Context(), requestIn(tc.pool, "pvc-1", 1)); !errors.Is(err, provision.ErrPoolMissing) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("in %+v: %v", tc.pool, err)
			}
		}
	})
}

// The caller would look for another node.
func TestNoPoolIsSaidToBeMissingOnceLVMDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := lvmtest.NewHost(nil)
		_, c := counted(host)
		p, _ := start(t, c)
		synctest.Wait()
		if _, err := p.Report(t.Context()); err != nil {
			t.Fatal(err)
		}
		disturb(host, func(c run.Command, _ func() ([]byte, error)) ([]byte, error) { return nil, exit5(c) })
		if _, err := p.Create(t.Context(), request("pvc-1", 1)); !errors.Is(err, provision.ErrUnavailable) {
			t.Errorf("got %v", err)
		}
	})
}

// two returns a machine with two groups of thick volumes, and a provisioner that does not watch
// them.
func two(t *testing.T) (*lvmtest.Host, *lvm.Provisioner) {
	t.Helper()
	host := lvmtest.NewHost(map[string]int64{vg.Name: 100, vgB.Name: 100})
	_, c := counted(host)
	p, err := lvm.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Wait)
	return host, p
}

func TestAVolumeThatWentUnnoticedFromAnotherPoolIsMade(t *testing.T) {
	host, p := two(t)
	create(t, p, requestIn(vgB, "pvc-1", 2))
	if _, err := p.Create(t.Context(), request("pvc-1", 2)); !errors.Is(err, provision.ErrConflict) {
		t.Errorf("beside the other: %v", err)
	}
	unnoticed(host, func(groups map[string]*lvmtest.Group) {
		delete(groups[vgB.Name].Volumes, "pvc-1")
		groups[vgB.Name].Seqno++
	})
	create(t, p, request("pvc-1", 2))
}

func TestNoVolumeIsACopyOfASourceInAnotherGroup(t *testing.T) {
	_, p := two(t)
	create(t, p, requestIn(vgB, "pvc-1", 2))
	if _, err := p.Snapshot(t.Context(), snapshotOf("pvc-1")); err != nil {
		t.Fatal(err)
	}
	for _, source := range []provision.Source{{Volume: "pvc-1"}, {Snapshot: "snap-1"}} {
		r := request("pvc-2", 2)
		r.Source = source
		if _, err := p.Create(t.Context(), r); !errors.Is(err, provision.ErrInvalid) {
			t.Errorf("a copy of %+v: %v", source, err)
		}
	}
}

// The caller repeats a request that was met long ago.
func TestACopyThatIsThereStaysOneThoughAnotherGroupHasTheIDOfItsSource(t *testing.T) {
	for name, source := range map[string]provision.Source{"a clone": {Volume: "pvc-1"}, "a restore": {Snapshot: "snap-1"}} {
		t.Run(name, inBubble(func(t *testing.T) {
			s := thick(t, 100)
			s.let()
			s.host.AddGroup(vgB.Name, 100)
			s.took()
			s.awaitWhole()
			if _, err := s.copy("pvc-2", 2, source); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			for _, id := range []string{"snap-1", "pvc-1"} {
				unnoticed(s.host, func(groups map[string]*lvmtest.Group) {
					groups[vgB.Name].Volumes[id] = groups[vg.Name].Volumes[id]
					delete(groups[vg.Name].Volumes, id)
				})
			}
			s.restart()
			if v, err := s.copy("pvc-2", 2, source); err != nil || v.Copying || v.Source != source {
				t.Errorf("it is %+v, %v", v, err)
			}
		}))
	}
}
