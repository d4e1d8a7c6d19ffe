package device_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/provision/device"
	"berth.dev/berth/internal/provision/device/devicetest"
)

const (
	mib      = int64(1 << 20)
	diskSize = 16 * mib
	// room of a disk: all but its first and last MiB.
	room = diskSize - 2*mib
	id   = "pvc-0b0e6f2e-8a4e-4f57-9a53-8b6f3f1f9a10"
)

func pool(identity string) provision.PoolRef {
	return provision.PoolRef{Type: provision.Device, Name: provision.DiskPrefix + identity}
}

// disks returns the machine that most tests use: it has two SCSI disks and an NVMe one.
func disks() *devicetest.Machine {
	return devicetest.NewMachine(
		devicetest.Disk("sda", "naa.a", diskSize),
		devicetest.Disk("sdb", "naa.b", diskSize+123*512),
		devicetest.Disk("nvme0n1", "eui.c", diskSize),
	)
}

// node is a provisioner over a machine, as it runs between two restarts.
type node struct {
	*device.Provisioner
	machine *devicetest.Machine
	mkfs    *mkfs
	stop    func()
}

// mkfs counts the filesystems made.
type mkfs struct {
	machine *devicetest.Machine
	mu      sync.Mutex
	made    int
	fault   error
}

func (m *mkfs) make(_ context.Context, v provision.Volume, filesystem, _ string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.made++
	if m.fault != nil {
		return m.fault
	}
	err := m.machine.Leads(v.Content.Source, v.Content.Identity)
	if err == nil {
		m.machine.WritePartition(v.Content.Source, "a filesystem: "+filesystem)
	}
	return err
}

// start makes a provisioner and runs it until the test or its stop ends it.
func start(t testing.TB, m *devicetest.Machine) *node {
	t.Helper()
	n := newNode(t, m)
	n.stop = conformance.Watching(t, n.Run)
	return n
}

// newNode makes a provisioner that does not run.
func newNode(t testing.TB, m *devicetest.Machine) *node {
	t.Helper()
	return over(t, m, m)
}

// over is newNode with the disks that the provisioner sees of a machine.
func over(t testing.TB, m *devicetest.Machine, disks device.Disks) *node {
	t.Helper()
	n := &node{machine: m, mkfs: &mkfs{machine: m}}
	var err error
	n.Provisioner, err = device.New(device.Config{Disks: disks, Mkfs: n.mkfs.make, WipeStep: 3 * mib, WipeRecord: 6 * mib})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (n *node) create(t testing.TB, id string, in provision.PoolRef) provision.Volume {
	t.Helper()
	v, err := n.Create(t.Context(), provision.CreateRequest{ID: id, Pool: in, Size: 1})
	if err != nil {
		t.Fatalf("creating %s: %v", id, err)
	}
	return v
}

func (n *node) delete(t testing.TB, id string) {
	t.Helper()
	if err := n.Delete(t.Context(), id); err != nil {
		t.Fatalf("deleting %s: %v", id, err)
	}
}

// report returns one pool as reported, nil if it is not.
func (n *node) report(t testing.TB, ref provision.PoolRef) *provision.Pool {
	t.Helper()
	pools, err := n.Report(t.Context())
	if err != nil && len(pools) == 0 { // others are reported beside a disk that does not answer
		t.Fatal(err)
	}
	for _, p := range pools {
		if p.PoolRef == ref {
			return &p
		}
	}
	return nil
}

// await waits until a pool is reported as wanted.
func (n *node) await(t testing.TB, ref provision.PoolRef, what string, ok func(*provision.Pool) bool) {
	t.Helper()
	timeout := time.NewTimer(10 * time.Minute)
	defer timeout.Stop()
	for {
		p := n.report(t, ref)
		if ok(p) {
			return
		}
		select {
		case <-n.Changed():
		case <-timeout.C:
			t.Fatalf("waited for %s, still reported: %+v", what, p)
		}
	}
}

func free(p *provision.Pool) bool { return p != nil && p.Problem == "" && p.Free == p.Total }

func TestConformanceOnPlayedDisks(t *testing.T) {
	conformance.RunWhole(t, playedDisks)
}

func TestPlayedDisksPassTheIdentitySuite(t *testing.T) {
	conformance.RunTwins(t, playedDisks)
	conformance.RunAway(t, playedDisks)
}

func playedDisks(t *testing.T) conformance.Harness {
	m := disks()
	n := start(t, m)
	pools := []provision.PoolRef{pool("naa.b"), pool("naa.a"), pool("eui.c")}
	return conformance.Harness{
		Provisioner: n.Provisioner, Pool: pools[0], Pools: pools,
		Restart: func() provision.Provisioner {
			n.stop()
			next := start(t, m)
			next.mkfs.made += n.mkfs.made
			n = next
			return n.Provisioner
		},
		PutForeign: func(string, int64) { m.WriteDisk("sdb", 1080, "\x53\xef") },
		Open:       func(v provision.Volume) func() { return m.Open(v.Content.Source) },
		Mislead:    func(v, other provision.Volume) { m.Mislead(v.Content.Source, other.Content.Source) },
		Scramble:   func(v provision.Volume) { m.WritePartition(v.Content.Source, "no signature at all") },
		Formats:    func(string) int { return n.mkfs.made },
		Write:      func(v provision.Volume, text string) { m.WritePartition(v.Content.Source, text) },
		Read:       func(v provision.Volume, bytes int) string { return m.ReadPartition(v.Content.Source, bytes) },
		Twin: func(provision.Volume) func() {
			m.Pull("nvme0n1")
			m.Plug(devicetest.Disk("nvme0n1", "eui.c", diskSize+123*512), m.Medium("sdb").Copy())
			return func() {
				m.Pull("nvme0n1")
				m.Plug(devicetest.Disk("nvme0n1", "eui.c", diskSize), devicetest.NewMedium())
			}
		},
		Away: func() func() {
			medium := m.Pull("sdb")
			return func() { m.Plug(devicetest.Disk("sdb", "naa.b", diskSize+123*512), medium) }
		},
	}
}
