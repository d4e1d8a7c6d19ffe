package replica

import (
	"context"
	"testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/worker"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/publish/staging"
)

func TestAVolumeIsCarvedReportedOnceAndThenFormatted(t *testing.T) {
	v := volume()
	v.Spec.MkfsOptions = "-I 512"
	n := newNode(v)
	n.settle(t)
	if !n.has() || !sameState(n.entry(t), v1alpha1.ReplicaReady, v1alpha1.ReasonCarved) {
		t.Errorf("data: %v, entry %+v", n.has(), n.entry(t))
	}
	if n.reports != 1 {
		t.Errorf("%d reports; want 1", n.reports)
	}
	want := provision.FormatRequest{ID: id, Filesystem: provision.Ext4, Options: "-I 512"}
	if len(n.formatted) == 0 || n.formatted[0] != want {
		t.Errorf("asked for the filesystems %+v, want %+v", n.formatted, want)
	}
}

func TestAVolumeIsWipedInTheEndAsItsClassSaysWhenItIsMade(t *testing.T) {
	n := newNode(volume())
	n.classes["fast"].Spec.LVM.Wipe = v1alpha1.WipeNone
	n.settle(t)
	if got := n.disks.Wipe(id); got != provision.WipeNone {
		t.Errorf("wiped by %q", got)
	}
}

func TestAFullPoolIsReportedAndTriedAgainWhenThereIsRoom(t *testing.T) {
	n := newNode(volume())
	if err := n.disks.PutForeign(vg0, "root", 10*gib); err != nil {
		t.Fatal(err)
	}
	result, err := n.step(t.Context())
	if err != nil || result.RequeueAfter != worker.RefusedDelay {
		t.Errorf("result %v, %v; want a slow retry", result, err)
	}
	if !sameState(n.entry(t), v1alpha1.ReplicaFailed, v1alpha1.ReasonNoSpace) || n.refused != 1 {
		t.Errorf("entry %+v, told %d times", n.entry(t), n.refused)
	}
	n.disks.RemoveForeign(vg0, "root")
	n.settle(t)
	if !sameState(n.entry(t), v1alpha1.ReplicaReady, v1alpha1.ReasonCarved) {
		t.Errorf("entry %+v after room was made", n.entry(t))
	}
}

func TestARefusalThatLastsIsReportedOnce(t *testing.T) {
	n := newNode(volume(of("99Gi")))
	for range 5 {
		if _, err := n.step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n.reports != 1 {
		t.Errorf("%d reports; want 1", n.reports)
	}
}

func TestAPoolThatNoAdministratorGaveToTheClassIsRefused(t *testing.T) {
	n := newNode(volume())
	n.classes["fast"].Spec.LVM.VolumeGroups = []string{"other"}
	if _, err := n.step(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n.has() || !sameState(n.entry(t), v1alpha1.ReplicaFailed, v1alpha1.ReasonPoolMissing) {
		t.Errorf("data: %v, entry %+v", n.has(), n.entry(t))
	}
}

func TestAClassThatDoesNotExistIsSaid(t *testing.T) {
	n := newNode(volume())
	delete(n.classes, "fast")
	if _, err := n.step(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !sameState(n.entry(t), v1alpha1.ReplicaFailed, v1alpha1.ReasonPoolMissing) {
		t.Errorf("entry %+v", n.entry(t))
	}
}

func TestExpansionWithoutRoomLeavesTheReplicaReadyAndCanBeTakenBack(t *testing.T) {
	n := newNode(volume())
	n.settle(t)
	n.edit(of("99Gi"))
	if _, err := n.step(t.Context()); err != nil {
		t.Fatal(err)
	}
	e := n.entry(t)
	if !sameState(e, v1alpha1.ReplicaReady, v1alpha1.ReasonNoSpace) || e.Capacity.Value() != gib || e.Requested.String() != "99Gi" {
		t.Errorf("entry %+v", e)
	}
	n.edit(of("1Gi"))
	n.settle(t)
	if e := n.entry(t); !sameState(e, v1alpha1.ReplicaReady, v1alpha1.ReasonCarved) || e.Requested.String() != "1Gi" {
		t.Errorf("entry %+v after the wish was taken back", e)
	}
}

func TestExpansionAnswersTheNewSize(t *testing.T) {
	n := newNode(volume())
	n.settle(t)
	n.edit(of("2Gi"))
	n.settle(t)
	if e := n.entry(t); e.Capacity.Value() != 2*gib || e.Requested.String() != "2Gi" {
		t.Errorf("entry %+v", e)
	}
}

func TestALostDeviceIsReportedAndNotReplaced(t *testing.T) {
	n := newNode(volume(saying(ready("1Gi", "1Gi"))))
	n.settle(t)
	if n.has() || !sameState(n.entry(t), v1alpha1.ReplicaFailed, v1alpha1.ReasonDeviceMissing) {
		t.Errorf("data: %v, entry %+v", n.has(), n.entry(t))
	}
	n.restart()
	n.settle(t)
	if n.has() {
		t.Error("the volume was made again, empty, after a restart")
	}
}

func TestAReplicaThatLeftANodeIsMadeWhenItIsWantedThereAgain(t *testing.T) {
	n := newNode(volume(on("n2"), saying(gone())))
	n.settle(t)
	n.edit(on(here))
	n.settle(t)
	if !n.has() || !sameState(n.entry(t), v1alpha1.ReplicaReady, v1alpha1.ReasonCarved) {
		t.Errorf("data: %v, entry %+v", n.has(), n.entry(t))
	}
}

// stingy is a provisioner that makes no volume larger, and does not say so.
type stingy struct{ provision.Provisioner }

func (s stingy) Expand(ctx context.Context, r provision.ExpandRequest) (provision.Volume, error) {
	return s.Get(ctx, r.ID)
}

func TestAnExpansionThatMadeNothingLargerIsNotReportedAsOne(t *testing.T) {
	n := newNode(volume())
	n.settle(t)
	n.worker.Provisioner = stingy{n.worker.Provisioner}
	n.edit(of("2Gi"))
	n.settle(t)
	if e := n.entry(t); e.Capacity.Value() != gib || e.Requested.String() != "1Gi" {
		t.Errorf("entry %+v", e)
	}
}

func TestAStaleWatchCarvesNothingThatStays(t *testing.T) {
	n := newNode(volume())
	n.edit(on("n2")) // moved away, and the watch does not show it
	if result, err := n.stepStale(t.Context()); err != nil || result.RequeueAfter != worker.StaleDelay {
		t.Errorf("result %v, %v; want a quick retry", result, err)
	}
	n.settle(t)
	if n.has() || n.entry(t) != nil {
		t.Errorf("data: %v, entry %+v", n.has(), n.entry(t))
	}
}

func TestRemovalWaitsForTheDeviceToBeClosed(t *testing.T) {
	n := newNode(volume())
	n.settle(t)
	closeDevice := n.disks.Open(id)
	n.edit(deleting)
	if _, err := n.step(t.Context()); err == nil {
		t.Error("no retry was asked for")
	}
	if !n.has() || !sameState(n.entry(t), v1alpha1.ReplicaFailed, v1alpha1.ReasonInUse) {
		t.Errorf("data: %v, entry %+v", n.has(), n.entry(t))
	}
	closeDevice()
	n.settle(t)
	if n.has() || !sameState(n.entry(t), v1alpha1.ReplicaGone, v1alpha1.ReasonRemoved) {
		t.Errorf("data: %v, entry %+v", n.has(), n.entry(t))
	}
}

func TestAPublishedRawBlockVolumeIsInUseAlthoughNoProcessHasItOpen(t *testing.T) {
	n := newNode(volume(block))
	n.settle(t)
	n.mounted = []string{"/var/lib/kubelet/pods/p/dev"}
	n.edit(deleting)
	if _, err := n.step(t.Context()); err == nil {
		t.Error("no retry was asked for")
	}
	if !n.has() || !sameState(n.entry(t), v1alpha1.ReplicaFailed, v1alpha1.ReasonInUse) {
		t.Errorf("data: %v, entry %+v", n.has(), n.entry(t))
	}
	n.mounted = nil
	n.settle(t)
	if n.has() {
		t.Error("the data is still there")
	}
}

func TestTheFormatterMakesTheFilesystemAndSurvivesADeletedVolume(t *testing.T) {
	n := newNode(volume())
	f := NewFormatter(n.worker.Provisioner, staging.OneCopy{Locks: n.worker.Locks})
	if err := f.format(t.Context(), provision.FormatRequest{ID: id, Filesystem: provision.Ext4}); err == nil {
		t.Error("a volume that does not exist was formatted")
	}
	n.settle(t)
	if err := f.format(t.Context(), provision.FormatRequest{ID: id, Filesystem: provision.Ext4}); err != nil {
		t.Fatal(err)
	}
	got, _ := n.disks.Device("/dev/vg0/" + id)
	if got.Filesystem != provision.Ext4 {
		t.Errorf("filesystem %q", got.Filesystem)
	}
}
