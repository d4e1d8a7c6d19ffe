package group

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"

	"berth.dev/berth/internal/provision"
)

// Block is the kernel's description of a block device. None of it is read from the device, which
// a pod may have written.
type Block struct {
	// Remote says that the disk is reached over a network: iSCSI, Fibre Channel, NVMe over fabrics.
	Remote bool
	// Below are the kernel's names of the devices that it is made of; of a partition its disk. They
	// need not be known for a device that IsVolume.
	Below []string
	// Partition is the name that the partition table gives it.
	Partition string
	// Mapping is the device mapper's name.
	Mapping string
	// Backing is the path of the file or device that a loop device leads to, empty if it leads
	// nowhere. Over is the kernel's name of that device, empty if it is a file.
	Backing, Over string
}

// Known is what udev knows of a device, by what it has read from it: further names in /dev that lead to it, and whether
// it bears a physical volume of LVM.
type Known struct {
	Links  []string
	Member bool
}

// Mapping is the state of a device-mapper device.
type Mapping struct {
	// Suspended says that a process that writes to the device waits until it is resumed.
	Suspended bool
	// ReadOnly says that the kernel refuses to write to the device.
	ReadOnly bool
}

// publishes is in the path by which the kubelet gives a raw block volume to a pod: the
// name of a directory that all its plugins share.
const publishes = "/volumeDevices/"

// volumeMapping matches the device mapper's names of logical volumes with ids of Berth's: of volumes and
// snapshots, and of the cows that a thick copy is filled from. All of them show what a pod wrote.
var volumeMapping = regexp.MustCompile(`[^-]-(cow--)?(pvc|vol|inline|snap)--`)

// IsVolume says whether a device has the name of a logical volume with an id of Berth's. Pods wrote
// its bytes, whatever it is made of. LVM's filter goes by the name, so IsVolume does not ask for the uuid.
func (b Block) IsVolume() bool { return volumeMapping.MatchString(b.Mapping) }

// zvol begins the kernel's names of the volumes of ZFS.
const zvol = "zd"

// Exposed returns devices that stand for the kinds of devices that pods write to, now or later: the
// loop devices that the kubelet makes, and volumes of ZFS if the machine has some. Disks of a network have no name that
// stands for all of them: see OnNetwork.
func Exposed(blocks map[string]Block) [][]string {
	devices := [][]string{{"/dev/loop0"}, {"/dev/loop7"}, {"/dev/loop31"}}
	for name := range blocks {
		if strings.HasPrefix(name, zvol) {
			return append(devices, []string{"/dev/" + zvol + "0"}, []string{"/dev/" + zvol + "16"})
		}
	}
	return devices
}

// WrittenByPods returns why pods write to a device, or may, by the kernel's names of the devices.
// A loop device over an ordinary file belongs to an administrator, and can be in a volume group.
//
// A disk of a network is the pods', here or on another node, and may stay after its pod. That holds for every such disk,
// and not only for those that Berth has attached: what it notes of that may be old or lost, and drivers of others attach
// theirs, too. listed says that the machine's LVM has a devices file: then an administrator has chosen each disk that it
// reads, by a name that no pod writes. A filter chooses names in /dev, which may lead to another disk tomorrow.
func WrittenByPods(blocks map[string]Block, listed bool) map[string]string {
	given := map[string]bool{}
	for _, b := range blocks {
		if b.Over != "" && strings.Contains(b.Backing, publishes) {
			given[b.Over] = true
		}
	}
	return inherited(blocks, func(name string) string {
		why := blocks[name].writtenByPods(name, given[name])
		if why == "" && blocks[name].Remote && !listed {
			return "it is reached over a network"
		}
		return why
	})
}

// OnNetwork returns the disks that are reached over a network, and then the devices that are made of them.
func OnNetwork(blocks map[string]Block) []string {
	why := inherited(blocks, func(name string) string {
		if blocks[name].Remote {
			return name
		}
		return ""
	})
	maps.DeleteFunc(why, func(_, reason string) bool { return reason == "" })
	made := func(name string) int { return min(1, len(blocks[name].Below)) }
	return slices.SortedFunc(maps.Keys(why), func(a, b string) int { return cmp.Or(made(a)-made(b), cmp.Compare(a, b)) })
}

// inherited returns what is said of each device, or of one that it is made of; empty if nothing is.
func inherited(blocks map[string]Block, say func(name string) string) map[string]string {
	why := map[string]string{}
	var judge func(name string) string
	judge = func(name string) string {
		if known, done := why[name]; done {
			return known
		}
		why[name] = "" // no device is below itself, whatever the kernel says
		reason := say(name)
		for _, below := range blocks[name].Below {
			if by := judge(below); reason == "" && by != "" {
				reason = "it is on " + below + ": " + by
			}
		}
		why[name] = reason
		return reason
	}
	for name := range blocks {
		judge(name)
	}
	return why
}

// writtenByPods is empty, or says why pods write to a device, apart from the devices below it.
// given says that the kubelet has given the device to a pod.
func (b Block) writtenByPods(name string, given bool) string {
	switch {
	case given:
		return "the kubelet has given it to a pod"
	case strings.HasPrefix(name, "loop") && b.Over != "":
		return "it leads to the block device " + b.Over
	case strings.HasPrefix(name, "loop") && strings.Contains(b.Backing, publishes):
		return "it leads to " + b.Backing
	case strings.HasPrefix(name, "loop") && b.Backing == "" && len(b.Below) == 0:
		return "it is a loop device that leads nowhere"
	case strings.HasPrefix(name, zvol):
		return "it is a volume of ZFS"
	case strings.HasPrefix(name, "nbd"), strings.HasPrefix(name, "rbd"):
		return "it is a block device of the network"
	case b.Partition != "" && provision.CheckID(b.Partition) == nil:
		return "it is volume " + b.Partition + ", a whole disk"
	case b.IsVolume():
		return "it is the logical volume " + b.Mapping
	}
	return ""
}
