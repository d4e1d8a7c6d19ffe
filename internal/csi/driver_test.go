package csi

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/driver"
)

// charted returns the CSIDriver of the chart, without the fields that the chart's values set.
func charted(t *testing.T) storagev1.CSIDriver {
	t.Helper()
	template, err := os.ReadFile("../../charts/berth/templates/csidriver.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var d storagev1.CSIDriver
	if err := yaml.Unmarshal(regexp.MustCompile(`{{[^}]*}}`).ReplaceAll(template, []byte("null")), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func announced(t *testing.T) []csi.NodeServiceCapability_RPC_Type {
	t.Helper()
	return capabilities(t, NewNode(driver.Local(), "n1", &nodeVolumes{}, nil))
}

func capabilities(t *testing.T, n *Node) []csi.NodeServiceCapability_RPC_Type {
	t.Helper()
	r, err := n.NodeGetCapabilities(t.Context(), &csi.NodeGetCapabilitiesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var all []csi.NodeServiceCapability_RPC_Type
	for _, c := range r.GetCapabilities() {
		all = append(all, c.GetRpc().GetType())
	}
	return all
}

// The chart must declare the behaviour of the driver.
func TestTheChartDeclaresTheDriverThatThisIs(t *testing.T) {
	d := charted(t)
	if d.Name != v1alpha1.LocalDriverName {
		t.Errorf("the driver is called %s", d.Name)
	}
	if d.Spec.AttachRequired == nil || *d.Spec.AttachRequired {
		t.Error("attachments are asked for, and nobody makes them")
	}
	if d.Spec.PodInfoOnMount == nil || !*d.Spec.PodInfoOnMount {
		t.Error("inline volumes need to know their pod")
	}
	for _, mode := range []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecyclePersistent, storagev1.VolumeLifecycleEphemeral} {
		if !slices.Contains(d.Spec.VolumeLifecycleModes, mode) {
			t.Errorf("volumes that are %s are missing", mode)
		}
	}
}

// Either the kubelet gives a volume's files to the pod's group or the driver does. With the
// default policy, ReadWriteOnceWithFSType, a volume of another access mode would get no group.
func TestTheKubeletGivesVolumesToThePodsGroup(t *testing.T) {
	if policy := charted(t).Spec.FSGroupPolicy; policy == nil || *policy != storagev1.FileFSGroupPolicy {
		t.Errorf("the policy is %v, want File", policy)
	}
	if slices.Contains(announced(t), csi.NodeServiceCapability_RPC_VOLUME_MOUNT_GROUP) {
		t.Error("the driver says that it does it, and ext4 and xfs have no mount option for it")
	}
}

// With SELinuxMount the kubelet mounts with the pod's SELinux context. Without it each file
// is relabelled.
func TestTheKubeletMountsWithAnSELinuxContext(t *testing.T) {
	if on := charted(t).Spec.SELinuxMount; on == nil || !*on {
		t.Error("the chart does not say that context= is understood")
	}
}

// Without the capability the kubelet takes ReadWriteOncePod for ReadWriteOnce.
func TestASinglePodsVolumeIsToldFromASingleNodes(t *testing.T) {
	if !slices.Contains(announced(t), csi.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER) {
		t.Error("the node service does not announce it")
	}
}
