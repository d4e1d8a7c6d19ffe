package poold

import (
	"testing"

	"berth.dev/berth/internal/poold/pb"
	"berth.dev/berth/internal/provision"
)

// A poold of before Content names a dataset in place of a device, and sends no tree.
func TestAVolumeOfAnOlderPooldIsATreeIfItsDeviceIsNoPath(t *testing.T) {
	for name, tc := range map[string]struct {
		sent *pb.Volume
		want provision.Content
	}{
		"a dataset":                 {&pb.Volume{Device: "tank/berth-volumes/pvc-1"}, provision.Content{Source: "tank/berth-volumes/pvc-1", Tree: provision.Dataset}},
		"a zvol":                    {&pb.Volume{Device: "/dev/zvol/tank/pvc-1", Identity: "zvol:tank/pvc-1"}, provision.Content{Source: "/dev/zvol/tank/pvc-1", Identity: "zvol:tank/pvc-1"}},
		"a volume without a device": {&pb.Volume{}, provision.Content{}},
		"a volume of a newer poold": {&pb.Volume{Device: "/dev/a[/pvc-1]", Tree: "btrfs"}, provision.Content{Source: "/dev/a[/pvc-1]", Tree: "btrfs"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := volumeFromWire(tc.sent).Content; got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

// An agent of before Content asks for a mount in the same way.
func TestAMountForAnOlderAgentIsOfATreeIfItsDeviceIsNoPath(t *testing.T) {
	want := provision.Content{Source: "tank/berth-volumes/pvc-1", Tree: provision.Dataset}
	for name, got := range map[string]provision.Content{
		"a mount":  contentFromWire(&pb.MountRequest{Device: want.Source, Filesystem: "zfs"}),
		"a bind":   contentFromWire(&pb.BindRequest{Device: want.Source}),
		"a growth": contentFromWire(&pb.GrowRequest{Device: want.Source, Filesystem: "zfs"}),
	} {
		if got != want {
			t.Errorf("%s is of %+v, want %+v", name, got, want)
		}
	}
}

// An older program reads the device alone.
func TestAnOlderProgramFindsADatasetInTheDevice(t *testing.T) {
	v := provision.Volume{Content: provision.Content{Source: "tank/berth-volumes/pvc-1", Tree: provision.Dataset}}
	if got := volumeToWire(v); got.GetDevice() != v.Content.Source || got.GetIdentity() != "" {
		t.Errorf("sent %v", got)
	}
}
