package csi

import (
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/proto"

	"berth.dev/berth/internal/driver"
)

// The calls come from the sidecars and the kubelet, and bear what tenants wrote into claims and pods.
// What is accepted has what the use cases expect of a caller.
func FuzzCalls(f *testing.F) {
	mount := &csi.VolumeCapability{
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{FsType: "ext4", MountFlags: []string{"noatime"}}},
	}
	for _, m := range []proto.Message{
		&csi.CreateVolumeRequest{
			Name: "pvc-1", Parameters: map[string]string{"poolClass": "fast"}, VolumeCapabilities: []*csi.VolumeCapability{mount},
			CapacityRange: &csi.CapacityRange{RequiredBytes: 1 << 30},
		},
		&csi.NodeStageVolumeRequest{VolumeId: "vol-1", StagingTargetPath: "/s", VolumeCapability: mount},
		&csi.NodePublishVolumeRequest{
			VolumeId: "csi-1", TargetPath: "/t", VolumeCapability: mount,
			VolumeContext: map[string]string{ephemeralKey: "true", "poolClass": "fast", "size": "1Gi", podUIDKey: "u"},
		},
	} {
		b, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	d := driver.Local()
	f.Fuzz(func(t *testing.T, b []byte) {
		var create csi.CreateVolumeRequest
		if proto.Unmarshal(b, &create) == nil {
			if r, err := parseCreate(d, &create); err == nil && (r.Name == "" || r.PoolClass == "" || r.Size.Required < 0) {
				t.Errorf("CreateVolume: %+v", r)
			}
		}
		var stage csi.NodeStageVolumeRequest
		if proto.Unmarshal(b, &stage) == nil {
			if r, err := parseStage(d, &stage); err == nil && (r.ID == "" || r.Path == "") {
				t.Errorf("NodeStageVolume: %+v", r)
			}
		}
		var publish csi.NodePublishVolumeRequest
		if proto.Unmarshal(b, &publish) == nil {
			_, _ = parsePublish(d, &publish)
			if r, err := parseInline(d, &publish); err == nil && (r.Target == "" || r.PodUID == "") {
				t.Errorf("an inline volume: %+v", r)
			}
		}
	})
}
