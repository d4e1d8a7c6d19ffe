package provision_test

import (
	"context"
	"errors"
	"testing"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/provision/memory"
)

var (
	thick = provision.PoolRef{Type: provision.LVM, Name: "vg"}
	whole = provision.PoolRef{Type: provision.Device, Name: "disk:one"}
)

const diskSize = 200 * unit

// pair is a node with a volume group and a disk, each with its provisioner.
type pair struct {
	*provision.Mux
	groups, disks *memory.Disks
	down          *outage
}

func newPair(t *testing.T) *pair {
	t.Helper()
	p := &pair{
		groups: memory.NewDisks(memory.PoolConfig{PoolRef: thick, Total: 100 * unit, Unit: unit}),
		disks:  memory.NewDisks(memory.PoolConfig{PoolRef: whole, Total: diskSize, Unit: diskSize}),
		down:   &outage{},
	}
	p.Mux = p.mux(t)
	return p
}

func (p *pair) mux(t *testing.T) *provision.Mux {
	m := provision.NewMux(
		provision.Member{Types: []string{provision.LVM, provision.LVMThin}, Provisioner: memory.New(p.groups, nil)},
		provision.Member{Types: []string{provision.Device}, Provisioner: memory.New(p.disks, p.down)},
	)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return m
}

// outage makes the disks' provisioner fail.
type outage struct{ err error }

func (o *outage) Before(context.Context, memory.Operation, string) error { return o.err }
func (o *outage) After(context.Context, memory.Operation, string) error  { return nil }

func TestAMuxIsAProvisioner(t *testing.T) {
	conformance.Run(t, harness)
	conformance.RunSnapshots(t, harness)
}

func harness(t *testing.T) conformance.Harness {
	p := newPair(t)
	return conformance.Harness{
		Provisioner: p.Mux, Pool: thick,
		Restart: func() provision.Provisioner { return p.mux(t) },
		PutForeign: func(name string, size int64) {
			if err := p.groups.PutForeign(thick, name, size); err != nil {
				t.Fatal(err)
			}
		},
		Open:     func(v provision.Volume) func() { return p.groups.Open(v.ID) },
		Scramble: func(provision.Volume) {},
		Formats:  p.groups.Formats,
		Write:    func(v provision.Volume, text string) { p.groups.Write(v.ID, text) },
		Read:     func(v provision.Volume, bytes int) string { return p.groups.Read(v.ID)[:bytes] },
	}
}

// plain is a provisioner without snapshots.
type plain struct{ provision.Provisioner }

func TestAProvisionerWithoutSnapshotsSaysSo(t *testing.T) {
	m := provision.NewMux(provision.Member{Types: []string{provision.LVM}, Provisioner: plain{memory.New(newPair(t).groups, nil)}})
	if _, err := m.Create(t.Context(), volume(thick)); err != nil {
		t.Fatal(err)
	}
	_, err := m.Snapshot(t.Context(), provision.SnapshotRequest{ID: "snap-1", Volume: goodID})
	if !errors.Is(err, provision.ErrUnsupported) {
		t.Errorf("a snapshot: %v, want ErrUnsupported", err)
	}
	clone := volume(thick)
	clone.ID, clone.Source.Volume = "pvc-clone", goodID
	if _, err := m.Create(t.Context(), clone); !errors.Is(err, provision.ErrUnsupported) {
		t.Errorf("a clone: %v, want ErrUnsupported", err)
	}
	if _, err := m.Get(t.Context(), clone.ID); !errors.Is(err, provision.ErrNotFound) {
		t.Errorf("what was refused is there: %v", err)
	}
}

func volume(pool provision.PoolRef) provision.CreateRequest {
	return provision.CreateRequest{ID: goodID, Pool: pool, Size: 10 * unit}
}

func TestAVolumeIsInOnePoolOfOneProvisioner(t *testing.T) {
	p := newPair(t)
	made, err := p.Create(t.Context(), volume(whole))
	if err != nil || made.Size != diskSize {
		t.Fatalf("created %+v: %v", made, err)
	}
	if _, err := p.Create(t.Context(), volume(thick)); !errors.Is(err, provision.ErrConflict) {
		t.Errorf("the same volume in another pool: %v, want ErrConflict", err)
	}
	if got, err := p.Get(t.Context(), goodID); err != nil || got != made {
		t.Errorf("got %+v: %v", got, err)
	}
	if got, err := p.Format(t.Context(), provision.FormatRequest{ID: goodID, Filesystem: provision.XFS}); err != nil || got.Pool != whole {
		t.Errorf("formatted %+v: %v", got, err)
	}
	if err := p.Delete(t.Context(), goodID); err != nil {
		t.Error(err)
	}
	if _, err := p.Create(t.Context(), volume(thick)); err != nil {
		t.Errorf("after the first is gone: %v", err)
	}
}

func TestAProvisionerThatCannotBeAskedMayHaveTheVolume(t *testing.T) {
	p := newPair(t)
	p.down.err = provision.ErrUnavailable
	_, got := p.Get(t.Context(), goodID)
	_, created := p.Create(t.Context(), volume(thick))
	_, reported := p.Report(t.Context())
	_, expanded := p.Expand(t.Context(), provision.ExpandRequest{ID: goodID, Size: unit})
	for what, err := range map[string]error{
		"get": got, "create": created, "report": reported, "expand": expanded, "delete": p.Delete(t.Context(), goodID),
	} {
		if !errors.Is(err, provision.ErrUnavailable) {
			t.Errorf("%s: %v, want ErrUnavailable", what, err)
		}
	}
	p.down.err = nil
	if _, err := p.Create(t.Context(), volume(thick)); err != nil {
		t.Fatal(err)
	}
	p.down.err = provision.ErrUnavailable
	if _, err := p.Get(t.Context(), goodID); err != nil {
		t.Errorf("a volume that one has is found while another is away: %v", err)
	}
}

func TestAReportHasThePoolsOfAll(t *testing.T) {
	pools, err := newPair(t).Report(t.Context())
	if err != nil || len(pools) != 2 || pools[0].PoolRef != thick || pools[1].PoolRef != whole {
		t.Errorf("reported %+v: %v", pools, err)
	}
}

func TestAChangeOfAnyIsSignalled(t *testing.T) {
	p := newPair(t)
	for _, disks := range []*memory.Disks{p.groups, p.disks} {
		disks.SetProblem(thick, "a")
		disks.SetProblem(whole, "a")
		<-p.Changed()
	}
}

func TestTheFormOfAPoolsNameGivesItsType(t *testing.T) {
	for name, want := range map[string]string{
		"vg0": "LVM", "vg0/thin": "LVMThin", "disk:eui.1": "Device", "zfs:tank": "ZFS", "zfs:tank/berth": "ZFS",
	} {
		if got := provision.TypeOf(name); got != want {
			t.Errorf("%s is of type %s, want %s", name, got, want)
		}
	}
}

// fixed is a provisioner without copies on other nodes.
type fixed struct{ provision.Provisioner }

func TestEachTypeOfPoolHasAReplicatorOfItsOwn(t *testing.T) {
	groups := memory.New(memory.NewDisks(), nil)
	m := provision.NewMux(
		provision.Member{Types: []string{provision.LVM, provision.LVMThin}, Provisioner: groups},
		provision.Member{Types: []string{provision.Device}, Provisioner: fixed{groups}},
	)
	for _, poolType := range []string{provision.LVM, provision.LVMThin} {
		if r, err := m.ReplicatorOf(t.Context(), poolType); err != nil || r != groups.Replicator() {
			t.Errorf("pools of type %s have %v, %v", poolType, r, err)
		}
	}
	for poolType, class := range map[string]error{provision.Device: provision.ErrUnsupported, provision.ZFS: provision.ErrPoolMissing, "": provision.ErrPoolMissing} {
		if r, err := m.ReplicatorOf(t.Context(), poolType); !errors.Is(err, class) {
			t.Errorf("pools of type %q have %v, %v", poolType, r, err)
		}
	}
}
