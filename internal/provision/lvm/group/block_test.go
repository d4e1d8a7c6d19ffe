package group

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestDevicesThatPodsWriteToAreTold(t *testing.T) {
	const kubelets = "/var/lib/kubelet/plugins/kubernetes.io/csi/volumeDevices/publish/pvc-1/pod"
	disk := map[string]Block{"sda": {}, "dm-0": {Mapping: "vg0-pvc--1"}}
	for name, tc := range map[string]struct {
		device string
		blocks map[string]Block
		why    string // empty: it can be the node's
	}{
		"a disk":                    {"sda", nil, ""},
		"a partition":               {"sda1", map[string]Block{"sda1": {Below: []string{"sda"}, Partition: "data"}}, ""},
		"an encrypted disk":         {"dm-5", map[string]Block{"dm-5": {Below: []string{"sda"}, Mapping: "luks-1"}}, ""},
		"a loop device over a file": {"loop0", map[string]Block{"loop0": {Backing: "/srv/vg.img"}}, ""},
		"a foreign logical volume":  {"dm-5", map[string]Block{"dm-5": {Mapping: "vg0-root"}}, ""},
		"a logical volume of a group named like a cow":     {"dm-5", map[string]Block{"dm-5": {Mapping: "my--cow--snap--1-root"}}, ""},
		"a foreign snapshot of LVM's":                      {"dm-5", map[string]Block{"dm-5": {Mapping: "vg0-snap"}}, ""},
		"a logical volume of a group with a similar name":  {"dm-5", map[string]Block{"dm-5": {Mapping: "my--pvc--1-root"}}, ""},
		"a disk of a volume group in a manual loop device": {"sda", map[string]Block{"loop1": {Backing: "/dev/sda", Over: "sda"}}, ""},

		"a loop device over a volume":                {"loop0", map[string]Block{"loop0": {Backing: "/dev/dm-0", Over: "dm-0"}}, "dm-0"},
		"a loop device over a volume by bind":        {"loop0", map[string]Block{"loop0": {Backing: "/", Over: "dm-0"}}, "dm-0"},
		"a loop device over a volume's file":         {"loop0", map[string]Block{"loop0": {Backing: kubelets}}, kubelets},
		"a loop device without a backing file":       {"loop0", map[string]Block{"loop0": {}}, "nowhere"},
		"a partition of a loop device over a volume": {"loop0p1", map[string]Block{"loop0": {Over: "dm-0"}, "loop0p1": {Below: []string{"loop0"}}}, "it is on loop0"},
		"a disk that the kubelet gave to a pod":      {"sdb", map[string]Block{"sdb": {}, "loop0": {Backing: kubelets, Over: "sdb"}}, "given"},
		"a file in a loop device that the kubelet gave to a pod": {"loop1", map[string]Block{
			"loop1": {Backing: "/srv/x.img"}, "loop0": {Backing: kubelets, Over: "loop1"}}, "given"},
		"a volume of ZFS":                    {"zd16", map[string]Block{"zd16": {}}, "ZFS"},
		"a partition of a volume of ZFS":     {"zd16p1", map[string]Block{"zd16": {}, "zd16p1": {Below: []string{"zd16"}}}, "ZFS"},
		"a disk of a network":                {"sdb", map[string]Block{"sdb": {Remote: true}}, "network"},
		"a partition of a disk of a network": {"sdb1", map[string]Block{"sdb": {Remote: true}, "sdb1": {Below: []string{"sdb"}}}, "it is on sdb"},
		"two paths to a disk of a network":   {"dm-5", map[string]Block{"sdb": {Remote: true}, "sdc": {Remote: true}, "dm-5": {Below: []string{"sdb", "sdc"}, Mapping: "mpatha"}}, "it is on sdb"},
		"an encrypted disk of a network":     {"dm-6", map[string]Block{"sdb": {Remote: true}, "dm-6": {Below: []string{"sdb"}, Mapping: "luks-1"}}, "network"},
		"a network block device":             {"nbd0", map[string]Block{"nbd0": {}}, "network"},
		"a Ceph block device":                {"rbd0", map[string]Block{"rbd0": {}}, "network"},
		"a whole disk of Berth":              {"sdb1", map[string]Block{"sdb1": {Below: []string{"sdb"}, Partition: "pvc-00000000000000000000000000000001"}}, "whole disk"},
		"a volume":                           {"dm-0", nil, "vg0-pvc--1"},
		"a snapshot":                         {"dm-6", map[string]Block{"dm-6": {Mapping: "vg0-snap--1", Below: []string{"sda"}}}, "vg0-snap--1"},
		"a cow for a snapshot":               {"dm-6", map[string]Block{"dm-6": {Mapping: "vg0-cow--snap--1", Below: []string{"sda"}}}, "vg0-cow--snap--1"},
		"a cow for a clone":                  {"dm-6", map[string]Block{"dm-6": {Mapping: "vg0-cow--pvc--2", Below: []string{"sda"}}}, "vg0-cow--pvc--2"},
		"what the origin of a cow is on":     {"dm-6", map[string]Block{"dm-6": {Mapping: "vg0-pvc--1-real", Below: []string{"sda"}}}, "vg0-pvc--1-real"},
		"what a cow is on":                   {"dm-6", map[string]Block{"dm-6": {Mapping: "vg0-cow--pvc--2-cow", Below: []string{"sda"}}}, "vg0-cow--pvc--2-cow"},
		"an array over loop devices":         {"md127", map[string]Block{"md127": {Below: []string{"sda", "loop0"}}, "loop0": {Over: "dm-0"}}, "it is on loop0"},
		"an encrypted device over a volume":  {"dm-5", map[string]Block{"dm-5": {Below: []string{"dm-0"}}}, "it is on dm-0"},
	} {
		t.Run(name, func(t *testing.T) {
			blocks := map[string]Block{}
			for _, some := range []map[string]Block{disk, tc.blocks} {
				maps.Copy(blocks, some)
			}
			why := WrittenByPods(blocks, false)[tc.device]
			if (why != "") != (tc.why != "") || !strings.Contains(why, tc.why) {
				t.Errorf("written by pods: %q, want %q", why, tc.why)
			}
		})
	}
}

// An administrator has listed the disks that LVM reads. What a pod has is not theirs even so.
func TestOfListedDisksThoseOfANetworkMayBeTheNodes(t *testing.T) {
	blocks := map[string]Block{
		"sdb": {Remote: true}, "dm-5": {Below: []string{"sdb"}, Mapping: "mpatha"},
		"sdc": {Remote: true}, "loop0": {Over: "sdc", Backing: "/var/lib/kubelet/plugins/kubernetes.io/csi/volumeDevices/publish/pvc-1/pod"},
		"nbd0": {}, "zd0": {},
	}
	written := WrittenByPods(blocks, true)
	for name, want := range map[string]bool{"sdb": false, "dm-5": false, "sdc": true, "loop0": true, "nbd0": true, "zd0": true} {
		if (written[name] != "") != want {
			t.Errorf("%s is written by pods: %q", name, written[name])
		}
	}
}

func TestDevicesOfANetworkAreListedDisksFirst(t *testing.T) {
	got := OnNetwork(map[string]Block{
		"sda": {}, "sda1": {Below: []string{"sda"}}, "dm-9": {Mapping: "vg0-pvc--1"}, "loop0": {Over: "sdb"},
		"sdc": {Remote: true}, "sdb": {Remote: true}, "sdb1": {Below: []string{"sdb"}}, "dm-0": {Below: []string{"sdb1"}, Mapping: "luks"},
	})
	if want := []string{"sdb", "sdc", "dm-0", "sdb1"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
