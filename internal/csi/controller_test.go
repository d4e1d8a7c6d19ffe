package csi

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/usecase/volumes"
)

// answers gives every use case one volume or one error, and records the arguments.
type answers struct {
	volume volumes.Volume
	err    error
	asked  []any
}

func (a *answers) Create(_ context.Context, r volumes.Request) (volumes.Volume, error) {
	a.asked = append(a.asked, r)
	return a.volume, a.err
}

func (a *answers) Delete(_ context.Context, id string) error {
	a.asked = append(a.asked, id)
	return a.err
}

func (a *answers) Expand(_ context.Context, id string, size volumes.Size) (volumes.Volume, error) {
	a.asked = append(a.asked, id, size)
	return a.volume, a.err
}

func (a *answers) Get(_ context.Context, id string) (volumes.Volume, error) {
	a.asked = append(a.asked, id)
	return a.volume, a.err
}

func (a *answers) List(_ context.Context, token string, limit int) ([]volumes.Volume, string, error) {
	a.asked = append(a.asked, token, limit)
	return []volumes.Volume{a.volume}, "more", a.err
}

func (a *answers) Capacity(_ context.Context, class string, nodes []string) (volumes.Capacity, error) {
	a.asked = append(a.asked, class, fmt.Sprint(nodes))
	return volumes.Capacity{Total: 20, Largest: 15}, a.err
}

const id = "pvc-00000000-0000-0000-0000-000000000001"

var ext4Volume = volumes.Volume{ID: id, Capacity: 7, Mode: v1alpha1.Filesystem, FSType: v1alpha1.Ext4, PoolClass: "fast", Nodes: []string{"n"}}

func same(t *testing.T, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
}

func TestCreateVolumeTellsWhereTheVolumeIs(t *testing.T) {
	got, err := NewController(driver.Local(), &answers{volume: ext4Volume}).CreateVolume(t.Context(), create())
	if err != nil {
		t.Fatal(err)
	}
	same(t, got.GetVolume(), &csi.Volume{
		VolumeId: id, CapacityBytes: 7,
		AccessibleTopology: []*csi.Topology{{Segments: map[string]string{v1alpha1.TopologyKey: "n"}}},
	})
}

func TestOnlyAFilesystemNeedsTheNodeToExpand(t *testing.T) {
	for mode, needed := range map[v1alpha1.VolumeMode]bool{v1alpha1.Filesystem: true, v1alpha1.Block: false} {
		a := &answers{volume: volumes.Volume{ID: id, Capacity: 9, Mode: mode}}
		got, err := NewController(driver.Local(), a).ControllerExpandVolume(t.Context(), &csi.ControllerExpandVolumeRequest{
			VolumeId: id, CapacityRange: &csi.CapacityRange{RequiredBytes: 8},
		})
		if err != nil || got.GetNodeExpansionRequired() != needed || got.GetCapacityBytes() != 9 {
			t.Errorf("%s: %v, %v", mode, got, err)
		}
	}
}

func TestListVolumesHandsPagesThrough(t *testing.T) {
	a := &answers{volume: ext4Volume}
	got, err := NewController(driver.Local(), a).ListVolumes(t.Context(), &csi.ListVolumesRequest{MaxEntries: 3, StartingToken: "x"})
	if err != nil || got.GetNextToken() != "more" || len(got.GetEntries()) != 1 || got.GetEntries()[0].GetVolume().GetVolumeId() != id {
		t.Errorf("%v, %v", got, err)
	}
	same(t, a.asked, []any{"x", 3})
	if _, err := NewController(driver.Local(), a).ListVolumes(t.Context(), &csi.ListVolumesRequest{MaxEntries: -1}); err == nil {
		t.Error("a negative page is accepted")
	}
}

func TestGetCapacity(t *testing.T) {
	a := &answers{}
	got, err := NewController(driver.Local(), a).GetCapacity(t.Context(), &csi.GetCapacityRequest{
		Parameters:         map[string]string{"poolClass": "fast"},
		AccessibleTopology: at("n")[0],
	})
	if err != nil || got.GetAvailableCapacity() != 20 || got.GetMaximumVolumeSize().GetValue() != 15 {
		t.Errorf("%v, %v", got, err)
	}
	same(t, a.asked, []any{"fast", "[n]"})
	for name, r := range map[string]*csi.GetCapacityRequest{
		"an unknown parameter":  {Parameters: map[string]string{"poolClass": "fast", "x": "y"}},
		"a foreign topology":    {AccessibleTopology: &csi.Topology{Segments: map[string]string{"zone": "a"}}},
		"several writing nodes": {VolumeCapabilities: []*csi.VolumeCapability{mounted(csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER, "")}},
	} {
		if _, err := NewController(driver.Local(), a).GetCapacity(t.Context(), r); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func TestOnlyMatchingCapabilitiesOfAVolumeAreConfirmed(t *testing.T) {
	multi := csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER
	tests := map[string]struct {
		capability *csi.VolumeCapability
		parameters map[string]string
		refused    string
	}{
		"the filesystem of the volume":         {capability: mounted(writer, "ext4")},
		"no filesystem":                        {capability: mounted(writer, "")},
		"the parameters of the volume":         {capability: mounted(writer, ""), parameters: map[string]string{"poolClass": "fast", "csi.storage.k8s.io/fstype": "ext4"}},
		"a mount option":                       {capability: mounted(writer, "", "commit=30")},
		"a mount option of another filesystem": {capability: mounted(writer, "", "inode64"), refused: `"inode64" is not supported for ext4`},
		"options of mkfs":                      {capability: mounted(writer, ""), parameters: map[string]string{"poolClass": "fast", "mkfsOptions": "-I 512"}, refused: "made with the options"},
		"a different filesystem":               {capability: mounted(writer, "xfs"), refused: "the volume's filesystem is ext4"},
		"a block device":                       {capability: raw(writer), refused: "the volume is a Filesystem volume"},
		"several nodes":                        {capability: mounted(multi, "ext4"), refused: "not supported"},
		"a different pool class":               {capability: mounted(writer, ""), parameters: map[string]string{"poolClass": "slow"}, refused: "PoolClass is fast"},
		"unknown parameters":                   {capability: mounted(writer, ""), parameters: map[string]string{"x": "y"}, refused: "unknown parameter"},
		"a class of a different filesystem":    {capability: mounted(writer, ""), parameters: map[string]string{"poolClass": "fast", "csi.storage.k8s.io/fstype": "xfs"}, refused: "filesystem is ext4"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := &csi.ValidateVolumeCapabilitiesRequest{VolumeId: id, VolumeCapabilities: []*csi.VolumeCapability{test.capability}, Parameters: test.parameters}
			got, err := NewController(driver.Local(), &answers{volume: ext4Volume}).ValidateVolumeCapabilities(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			if confirmed := got.GetConfirmed() != nil; confirmed != (test.refused == "") || !strings.Contains(got.GetMessage(), test.refused) {
				t.Errorf("got %v, want %q", got, test.refused)
			}
		})
	}
}

func TestIDsAndRangesAreRequired(t *testing.T) {
	c := NewController(driver.Local(), &answers{})
	for name, call := range map[string]func() error{
		"delete": func() error { _, err := c.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{}); return err },
		"get": func() error {
			_, err := c.ControllerGetVolume(t.Context(), &csi.ControllerGetVolumeRequest{})
			return err
		},
		"validate": func() error {
			_, err := c.ValidateVolumeCapabilities(t.Context(), &csi.ValidateVolumeCapabilitiesRequest{})
			return err
		},
		"expand": func() error {
			_, err := c.ControllerExpandVolume(t.Context(), &csi.ControllerExpandVolumeRequest{})
			return err
		},
		"expand without a range": func() error {
			_, err := c.ControllerExpandVolume(t.Context(), &csi.ControllerExpandVolumeRequest{VolumeId: id})
			return err
		},
	} {
		if err := call(); err == nil || !strings.Contains(err.Error(), "missing") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
