package provision_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/provision/lvm"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
	"berth.dev/berth/internal/provision/memory"
	"berth.dev/berth/internal/run/runtest"
)

var tank = provision.PoolRef{Type: provision.ZFS, Name: "zfs:tank"}

// mixed is a node with a volume group and a zpool. Only its LVM member starts processes.
type mixed struct {
	*provision.Mux
	host    *lvmtest.Host
	groups  *lvm.Provisioner
	started *runtest.Counter
}

func newMixed(t *testing.T) mixed {
	t.Helper()
	host := lvmtest.NewHost(map[string]int64{thick.Name: 100})
	started := runtest.Count(host)
	groups, err := lvm.New(lvm.Config{Runner: started, Devices: host, Mkfs: host.Mkfs})
	if err != nil {
		t.Fatal(err)
	}
	conformance.Watching(t, groups.Run)
	<-groups.Changed() // it watches from here on
	zpools := memory.New(memory.NewDisks(memory.PoolConfig{PoolRef: tank, Total: 100 * unit, Unit: unit}), nil)
	m := mixed{host: host, groups: groups, started: started, Mux: provision.NewMux(
		provision.Member{Types: []string{provision.LVM, provision.LVMThin}, Provisioner: groups},
		provision.Member{Types: []string{provision.ZFS}, Provisioner: zpools},
	)}
	if _, err := m.Report(t.Context()); err != nil {
		t.Fatal(err)
	}
	started.Take()
	return m
}

func TestAVolumeOfOneMemberCostsTheToolsOfNoOther(t *testing.T) {
	m := newMixed(t)
	ctx := t.Context()
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"create", func() error { _, err := m.Create(ctx, volume(tank)); return err }},
		{"create again", func() error { _, err := m.Create(ctx, volume(tank)); return err }},
		{"get", func() error { _, err := m.Get(ctx, goodID); return err }},
		{"format", func() error {
			_, err := m.Format(ctx, provision.FormatRequest{ID: goodID, Filesystem: provision.Ext4})
			return err
		}},
		{"expand", func() error {
			_, err := m.Expand(ctx, provision.ExpandRequest{ID: goodID, Size: 20 * unit})
			return err
		}},
		{"snapshot", func() error {
			_, err := m.Snapshot(ctx, provision.SnapshotRequest{ID: "snap-1", Volume: goodID})
			return err
		}},
		{"get snapshot", func() error { _, err := m.GetSnapshot(ctx, "snap-1"); return err }},
		{"delete snapshot", func() error { return m.DeleteSnapshot(ctx, "snap-1") }},
		{"delete", func() error { return m.Delete(ctx, goodID) }},
	} {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if got := m.started.Take(); len(got) > 0 {
			t.Errorf("%s of a volume in a zpool started %v", step.name, got)
		}
	}
}

func TestAnUnknownVolumeIsLookedForByAllProvisioners(t *testing.T) {
	m := newMixed(t)
	if _, err := m.Get(t.Context(), goodID); !errors.Is(err, provision.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	if got := m.started.Take(); !cmp.Equal(got, map[string]int{"fullreport": 1}) {
		t.Errorf("looking for it started %v", got)
	}
}

// theirs makes a volume behind the back of the provisioner of volume groups.
func (m mixed) theirs(id string) {
	m.host.Edit(func(groups map[string]*lvmtest.Group) string {
		g := groups[thick.Name]
		g.Volumes[id] = &lvmtest.Volume{Extents: 10, Active: true, Tags: []string{"berth.dev/volume=" + id}}
		g.Seqno++
		return g.Device
	})
}

func TestAVolumeThatCameBehindTheBackOfItsProvisionerIsNotMadeElsewhere(t *testing.T) {
	m := newMixed(t)
	m.theirs(goodID)
	<-m.groups.Changed() // the provisioner has noticed it
	if _, err := m.Create(t.Context(), volume(tank)); !errors.Is(err, provision.ErrConflict) {
		t.Errorf("created in another pool: %v", err)
	}
	if err := m.Delete(t.Context(), goodID); err != nil {
		t.Error(err)
	}
	if _, err := m.Get(t.Context(), goodID); !errors.Is(err, provision.ErrNotFound) {
		t.Errorf("after it was deleted: %v", err)
	}
}
