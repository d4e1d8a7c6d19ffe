//go:build platform

package staging

import (
	"context"
	"os"
	"slices"
	"testing"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/blockdev"
	"berth.dev/berth/internal/provision/blockdev/blockdevtest"
	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
)

// The provisioner's LVM makes device nodes itself. When the machine's LVM deactivates such a
// volume, it leaves the node. The node then leads to the volume that is activated next.

const (
	next   = "pvc-0b0e6f2e-8a4e-4f57-9a53-8b6f3f1f9a11"
	own    = "data of this volume"
	secret = "data of another volume"
)

// put makes a volume in a pool; one without filesystem is Block.
func (m *machine) put(t *testing.T, id, fs string, pool provision.PoolRef, how provision.Wipe) provision.Volume {
	t.Helper()
	v, err := m.disks.Create(t.Context(), provision.CreateRequest{ID: id, Pool: pool, Size: 64 * mib, Wipe: how})
	if err == nil && fs != "" {
		v, err = m.disks.Format(t.Context(), provision.FormatRequest{ID: id, Filesystem: fs})
	}
	if err != nil {
		t.Fatal(err)
	}
	m.specs[id] = spec(fs, pool)
	return v
}

func (m *machine) unstage(t *testing.T, id string) {
	t.Helper()
	if err := m.Unstage(context.WithoutCancel(t.Context()), id, m.path("stage-"+id)); err != nil {
		t.Error(err)
	}
}

// holds stages a volume, writes a text to it unless that is empty, and returns its old content.
func (m *machine) holds(t *testing.T, id, text string) string {
	t.Helper()
	m.stage(t, id)
	defer m.unstage(t, id)
	path := m.path("stage-"+id) + "/who"
	if text != "" {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Errorf("reading volume %s: %v", id, err)
	}
	return string(b)
}

// deactivated lets the machine's LVM deactivate a volume, and checks that the volume's node
// leads to the other one's device from then on.
func (m *machine) deactivated(t *testing.T, v provision.Volume, other func() provision.Volume) {
	t.Helper()
	lvmtest.LVM(t, "lvchange", "--activate", "n", group+"/"+v.ID)
	if o := other(); !blockdev.Same(v.Content.Source, o.Content.Source) {
		t.Fatalf("%s does not lead to the device of %s: this test shows nothing", v.Content.Source, o.ID)
	}
}

func TestAVolumeWhoseNumberIsAnothersByNowIsItself(t *testing.T) {
	m := newMachine(t)
	thick := provision.PoolRef{Type: provision.LVM, Name: group}
	v := m.put(t, id, provision.Ext4, thick, provision.WipeNone)
	m.holds(t, v.ID, own)
	m.deactivated(t, v, func() provision.Volume {
		other := m.put(t, next, provision.Ext4, thick, provision.WipeNone)
		m.holds(t, next, secret)
		return other
	})
	m.begin(t) // also after a restart
	if got := m.holds(t, v.ID, ""); got != own {
		t.Errorf("its pod is shown %q, want %q", got, own)
	}
	if got := m.holds(t, next, ""); got != secret {
		t.Errorf("the other volume holds %q, want %q", got, secret)
	}
}

func TestARawBlockVolumeWhoseNumberIsAnothersByNowIsItself(t *testing.T) {
	m := newMachine(t)
	thick := provision.PoolRef{Type: provision.LVM, Name: group}
	v := m.put(t, id, "", thick, provision.WipeNone)
	blockdevtest.WriteAt(t, v.Content.Source, own, 0)
	m.deactivated(t, v, func() provision.Volume {
		other := m.put(t, next, "", thick, provision.WipeNone)
		blockdevtest.WriteAt(t, other.Content.Source, secret, 0)
		return other
	})
	m.stage(t, v.ID)
	m.publish(t, v.ID, "pod")
	if got := blockdevtest.ReadAt(t, m.path("pod"), len(own), 0); got != own {
		t.Errorf("its pod is shown %q, want %q", got, own)
	}
	if err := m.Unpublish(t.Context(), v.ID, m.path("pod")); err != nil {
		t.Error(err)
	}
}

func TestOnlyTheRemnantOfADeactivatedVolumeIsWiped(t *testing.T) {
	m := newMachine(t)
	m.begin(t)
	thick := provision.PoolRef{Type: provision.LVM, Name: group}
	v := m.put(t, id, "", thick, "")
	var other provision.Volume
	m.deactivated(t, v, func() provision.Volume {
		other = m.put(t, next, "", thick, provision.WipeNone)
		blockdevtest.WriteAt(t, other.Content.Source, secret, 0)
		return other
	})
	if err := m.disks.Delete(t.Context(), v.ID); err != nil {
		t.Fatal(err)
	}
	lvmtest.Settle(t.Context(), t, m.disks, thick)
	if got := blockdevtest.ReadAt(t, other.Content.Source, len(secret), 0); got != secret {
		t.Errorf("the other volume holds %q, want %q", got, secret)
	}
}

// The documentation shows this way for a thin pool that does not work.
func TestAThinPoolThatAnAdministratorDeactivatedIsActivatedWhenItIsNeeded(t *testing.T) {
	m := newMachine(t)
	thin := lvmtest.RealThinPool(t, group, "thin", 512*mib, "--zero", "y")
	m.put(t, id, provision.Ext4, thin, "")
	m.holds(t, id, own)
	lvmtest.LVM(t, "lvchange", "--activate", "n", "--select", "pool_lv=thin || lv_name=thin", group)
	if got := m.holds(t, id, ""); got != own {
		t.Errorf("its pod is shown %q, want %q", got, own)
	}
	pools, err := m.disks.Report(t.Context())
	if err != nil || slices.ContainsFunc(pools, func(p provision.Pool) bool { return p.Problem != "" }) {
		t.Errorf("reported %+v, %v", pools, err)
	}
	if err := m.disks.Delete(t.Context(), id); err != nil {
		t.Error(err)
	}
}

// begin starts a new provisioner, as a new process of the agent does, and runs it.
func (m *machine) begin(t *testing.T) {
	t.Helper()
	conformance.Watching(t, m.provisioner(t).Run)
}
