package replica

import (
	"errors"
	"testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/worker"
	"berth.dev/berth/internal/decide/entries"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/memory"
)

// snapshot takes the snapshot of a volume that bears ext4 and holds a text.
func (n *node) snapshot(t *testing.T, text string) {
	t.Helper()
	p := memory.New(n.disks, nil)
	if _, err := p.Create(t.Context(), provision.CreateRequest{ID: original, Pool: vg0, Size: gib}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Format(t.Context(), provision.FormatRequest{ID: original, Filesystem: provision.Ext4}); err != nil {
		t.Fatal(err)
	}
	n.disks.Write(original, text)
	if _, err := p.Snapshot(t.Context(), provision.SnapshotRequest{ID: source, Volume: original}); err != nil {
		t.Fatal(err)
	}
}

func TestAVolumeIsMadeFromItsSourceAndMayBeLarger(t *testing.T) {
	n := newNode(volume(restored, of("2Gi")))
	n.snapshot(t, "what was")
	n.disks.Write(original, "what is")
	n.settle(t)
	if e := n.entry(t); !sameState(e, v1alpha1.ReplicaReady, v1alpha1.ReasonCarved) || e.Capacity.Value() != 2*gib {
		t.Errorf("entry %+v", e)
	}
	if got := n.disks.Read(id); got != "what was" {
		t.Errorf("the copy holds %q", got)
	}
	if len(n.formatted) != 0 {
		t.Error("a filesystem is asked for over the data of the source")
	}
}

func TestASourceThatIsNotThereIsSaidAndWaitedFor(t *testing.T) {
	n := newNode(volume(restored))
	if _, err := n.step(t.Context()); !errors.Is(err, entries.ErrNoSource) {
		t.Errorf("error %v; want %v and a retry", err, entries.ErrNoSource)
	}
	if n.has() || !sameState(n.entry(t), v1alpha1.ReplicaFailed, v1alpha1.ReasonSourceMissing) {
		t.Errorf("data: %v, entry %+v", n.has(), n.entry(t))
	}
	n.snapshot(t, "what was")
	n.settle(t)
	if !sameState(n.entry(t), v1alpha1.ReplicaReady, v1alpha1.ReasonCarved) {
		t.Errorf("entry %+v", n.entry(t))
	}
}

func TestACopyThatCannotBeIsSaidAndNotTriedSoon(t *testing.T) {
	disk := provision.PoolRef{Type: provision.Device, Name: "disk:eui.1"}
	for name, tc := range map[string]struct {
		change option
		reason string
	}{
		"the copy is smaller than the source": {of("512Mi"), v1alpha1.ReasonInvalid},
		"the pool makes no copies": {func(v *v1alpha1.Volume) {
			v.Spec.PoolClass, v.Spec.Replicas[0].Pool = "disks", disk.Name
		}, v1alpha1.ReasonUnsupported},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(volume(restored, tc.change))
			n.disks.AddPool(memory.PoolConfig{PoolRef: disk, Total: gib, Unit: gib, Paths: []string{"/dev/nvme0n1"}})
			n.classes["disks"] = &v1alpha1.PoolClass{Spec: v1alpha1.PoolClassSpec{
				Provisioner: v1alpha1.ProvisionerDevice, Devices: &v1alpha1.DevicePools{Paths: []string{"/dev/nvme*"}}}}
			n.worker.Pool = func(ref provision.PoolRef) provision.Pool {
				return provision.Pool{PoolRef: ref, Paths: []string{"/dev/nvme0n1"}}
			}
			n.snapshot(t, "what was")
			if result, err := n.step(t.Context()); err != nil || result.RequeueAfter != worker.RefusedDelay {
				t.Errorf("result %v, %v; want a slow retry", result, err)
			}
			if !sameState(n.entry(t), v1alpha1.ReplicaFailed, tc.reason) {
				t.Errorf("entry %+v; want %s", n.entry(t), tc.reason)
			}
		})
	}
}
