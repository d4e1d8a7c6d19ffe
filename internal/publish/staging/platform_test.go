//go:build platform

package staging

import (
	"errors"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"berth.dev/berth/internal/keyed"
	"berth.dev/berth/internal/mount/linux"
	"berth.dev/berth/internal/poold"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/lvm"
	"berth.dev/berth/internal/provision/lvm/kernel"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
	"berth.dev/berth/internal/run"
	"berth.dev/berth/internal/run/runtest"
)

const group = "vg-staging"

// machine is this machine: real logical volumes, the kernel's mount table, and
// a count of the processes that were started.
type machine struct {
	*node
	counter *runtest.Counter
	disks   poold.Node
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	lvmtest.RealGroup(t, group, lvmtest.Disks(t, 1)[0])
	lvmtest.EmptyAfter(t, group)
	m := &machine{node: &node{dir: t.TempDir(), specs: specs{}}, counter: runtest.Count(run.Exec{})}
	m.provisioner(t)
	return m
}

// provisioner makes a provisioner that has read nothing yet, and has the machine use it.
func (m *machine) provisioner(t *testing.T) *lvm.Provisioner {
	t.Helper()
	mounter, err := linux.New(linux.Config{Runner: m.counter})
	if err != nil {
		t.Fatal(err)
	}
	provisioner, err := lvm.New(lvm.Config{Runner: m.counter, Devices: kernel.Devices{}, Mkfs: mounter.Mkfs})
	if err != nil {
		t.Fatal(err)
	}
	all := provision.NewMux(provision.Member{Types: []string{provision.LVM, provision.LVMThin}, Provisioner: provisioner})
	m.disks = poold.NewLocal(all, mounter)
	locks := &keyed.Locks[string]{}
	m.Service = New(Config{
		Node: here, KubeletDir: m.dir, Disks: m.disks, Wishes: m.specs, Mounts: KernelMounts, Locks: locks, Owner: OneCopy{Locks: locks},
	})
	return provisioner
}

// carve makes a volume; one without filesystem is Block.
func (m *machine) carve(t *testing.T, fs string) provision.Volume {
	t.Helper()
	v, err := m.disks.Create(t.Context(), provision.CreateRequest{
		ID: id, Pool: provision.PoolRef{Type: "LVM", Name: group}, Size: 320 * mib, Wipe: provision.WipeNone, // gone at once when deleted
	})
	if err != nil {
		t.Fatal(err)
	}
	m.specs[id] = spec(fs, provision.PoolRef{Type: "LVM", Name: group})
	return v
}

func (m *machine) checkMounts(t *testing.T, v provision.Volume, names ...string) {
	t.Helper()
	var want []string
	for _, n := range names {
		want = append(want, m.path(n))
	}
	got, err := KernelMounts(v)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.SortSlices(func(a, b string) bool { return a < b })); diff != "" {
		t.Error(diff)
	}
}

func TestAVolumesLifeOnThisMachine(t *testing.T) {
	for _, fs := range []string{provision.Ext4, provision.XFS, ""} {
		t.Run("filesystem "+fs, func(t *testing.T) {
			m := newMachine(t)
			v := m.carve(t, fs)
			m.stage(t, id)
			m.counter.Take()
			m.publish(t, id, "pod1")
			m.publish(t, id, "pod2")
			mounts := []string{"pod1", "pod2"}
			if fs != "" {
				mounts = append(mounts, "stage-"+id)
			}
			m.checkMounts(t, v, mounts...)
			exclusive := m.publication(id, "pod3")
			exclusive.Exclusive = true
			if err := m.Publish(t.Context(), exclusive); !errors.Is(err, provision.ErrInUse) {
				t.Errorf("a second writer: %v; want %v", err, provision.ErrInUse)
			}
			m.checkFigures(t, fs)
			if counts := m.counter.Take(); len(counts) != 0 {
				t.Errorf("publish and stats started processes: %v", counts)
			}
			m.checkGrowth(t)
			m.end(t, v, mounts)
		})
	}
}

func (m *machine) checkFigures(t *testing.T, fs string) {
	t.Helper()
	figures, err := m.Stats(t.Context(), id, m.path("pod1"))
	if err != nil || figures.Total < 200*mib || figures.Block != (fs == "") || (figures.Inodes == 0) != (fs == "") {
		t.Errorf("figures %+v, %v", figures, err)
	}
}

func (m *machine) checkGrowth(t *testing.T) {
	t.Helper()
	if _, err := m.disks.Expand(t.Context(), provision.ExpandRequest{ID: id, Size: 640 * mib}); err != nil {
		t.Fatal(err)
	}
	if size, err := m.Expand(t.Context(), id, m.path("pod1"), 640*mib); err != nil || size != 640*mib {
		t.Errorf("expand: size %d, %v", size, err)
	}
	figures, err := m.Stats(t.Context(), id, m.path("pod2"))
	if err != nil || figures.Total < 500*mib {
		t.Errorf("figures after growth %+v, %v", figures, err)
	}
}

// end removes everything and checks that nothing is left.
func (m *machine) end(t *testing.T, v provision.Volume, mounts []string) {
	t.Helper()
	if m.specs[id].FSType != "" { // a raw block device that no process has open can be deleted
		if err := m.disks.Delete(t.Context(), id); !errors.Is(err, provision.ErrInUse) {
			t.Errorf("deleting a mounted volume: %v; want %v", err, provision.ErrInUse)
		}
	}
	for _, name := range mounts {
		call := m.Unpublish
		if name == "stage-"+id {
			call = m.Unstage
		}
		if err := call(t.Context(), id, m.path(name)); err != nil {
			t.Errorf("taking down %s: %v", name, err)
		}
	}
	m.checkMounts(t, v)
	if _, err := os.Lstat(m.path("pod1")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the target is left: %v", err)
	}
	if err := m.disks.Delete(t.Context(), id); err != nil {
		t.Errorf("deleting: %v", err)
	}
	if _, err := KernelMounts(v); !errors.Is(err, provision.ErrNotFound) {
		t.Errorf("mounts of a device that is gone: %v; want %v", err, provision.ErrNotFound)
	}
}
