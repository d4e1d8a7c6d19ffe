package provision

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/ledger"
)

// The types of provisioners, as in PoolClass.
const (
	// LVM carves thick logical volumes out of volume groups.
	LVM = string(v1alpha1.ProvisionerLVM)
	// LVMThin carves thin volumes out of thin pools.
	LVMThin = string(v1alpha1.ProvisionerLVMThin)
	// ZFS carves zvols and datasets out of zpools.
	ZFS = string(v1alpha1.ProvisionerZFS)
	// Btrfs carves subvolumes out of filesystems.
	Btrfs = string(v1alpha1.ProvisionerBtrfs)
	// Device hands out whole disks.
	Device = string(v1alpha1.ProvisionerDevice)
)

// The prefixes of pool names. No name of LVM's can begin with one of them.
const (
	// DiskPrefix begins the names of whole disks.
	DiskPrefix = "disk:"
	// ZFSPrefix begins the names of zpools, and of filesystems in them.
	ZFSPrefix = "zfs:"
	// BtrfsPrefix begins the names of filesystems of btrfs.
	BtrfsPrefix = "btrfs:"
)

// Filesystems that mkfs makes on a block device.
const (
	Ext4 = string(v1alpha1.Ext4)
	XFS  = string(v1alpha1.XFS)
)

// Dataset is a filesystem of ZFS itself. Only a zpool can hold one, and it is made with the
// volume.
const Dataset = string(v1alpha1.Dataset)

// Subvolume is a filesystem of btrfs: a subvolume of the pool.
const Subvolume = string(v1alpha1.Subvolume)

// Traits are the properties of a type of provisioner on which the rest of Berth depends. Code
// that treats types differently asks for a trait, and not for the name of a type.
type Traits struct {
	// Type is the name of the type.
	Type string
	// Prefix begins the names of its pools. With Slash a name also contains a slash.
	Prefix string
	Slash  bool
	// Kind has the rules by which the room in its pools is computed, here and by the
	// schedulers alike.
	Kind ledger.Kind
	// Copies is the feature of agents that take snapshots in its pools, and make volumes as
	// copies; empty if there are no snapshots.
	Copies string
	// Trims says that a filesystem which discards its free blocks gives something back: room of the
	// pool, or the knowledge of the disks below which blocks they need not keep.
	Trims bool
	// Devices says that its volumes can be block devices.
	Devices bool
	// Tree is the filesystem that its volumes can be by themselves, by the kernel's name;
	// empty if they cannot. TreeFeature is the feature of agents that make such volumes;
	// empty if all agents that know the type do.
	Tree, TreeFeature string
	// OfDisks is the word for one of its pools, if Berth makes them of empty disks; else empty.
	OfDisks string
	// Brought says that Berth itself brings the pools that it made back when the node has started.
	Brought bool
	// ByName says that Berth uses a pool that it did not make only where a class names it.
	ByName bool
	// Names are the names, without the prefix, that a pool made by Berth can have, and Reserved
	// those among them that it must not have; nil if there is no such rule beyond that for all
	// pools.
	Names, Reserved *regexp.Regexp
	// Layouts are those that its pools can have; nil if they have none.
	Layouts *Layouts
	// Tunings are those that its volumes can have; nil if they have none.
	Tunings *Tunings
}

// table has one row for each type. The first row whose form a pool's name has is its type's.
var table = []Traits{
	{
		Type: Device, Prefix: DiskPrefix, Kind: ledger.Device, Trims: true, Devices: true,
	},
	{
		Type: ZFS, Prefix: ZFSPrefix, Kind: ledger.Thick, Copies: v1alpha1.FeatureCopies, Devices: true,
		Tree: Dataset, TreeFeature: v1alpha1.FeatureDatasets, OfDisks: "zpool", Brought: true,
		Names:    regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]{0,99}$`),
		Reserved: regexp.MustCompile(`^(mirror|raidz|draid|spare|c[0-9]|log$|berth-(new|trash)$)`), // ZFS refuses its own only after it has labelled the disks
		Layouts: &Layouts{
			Widths: map[Redundancy]Span{Stripe: {1, 1}, Mirror: {2, 2}, RaidZ1: {3, 16}, RaidZ2: {4, 16}},
			Ashift: Span{12, 16},
			// ZFS refuses disks of less than 64 MiB only after it has labelled them.
			LeastDisk: 128 << 20, Differ: 16 << 20,
		},
		Tunings: &Tunings{
			Blocks:      Span{8 << 10, 128 << 10}, // the pointers to smaller ones need more room than Berth charges for a volume
			Records:     Span{512, 1 << 20},
			Compression: regexp.MustCompile(`^(on|off|lz4|lzjb|zle|gzip(-[1-9])?|zstd(-([1-9]|1[0-9]))?|zstd-fast(-([1-9]|[1-9]0|100|500|1000))?)$`),
		},
	},
	{
		Type: Btrfs, Prefix: BtrfsPrefix, Kind: ledger.Thick, Copies: v1alpha1.FeatureCopies,
		Tree: Subvolume, OfDisks: "filesystem", Brought: true, ByName: true,
	},
	{
		Type: LVMThin, Slash: true, Kind: ledger.Thin, Copies: v1alpha1.FeatureCopies, Trims: true, Devices: true,
	},
	{
		Type: LVM, Kind: ledger.Thick, Copies: v1alpha1.FeatureCopiesThick, Trims: true, Devices: true, OfDisks: "volume group",
	},
}

// TraitsOf returns the traits of a type; zero for a type that is not known.
func TraitsOf(provisioner string) Traits {
	return row(func(t Traits) bool { return t.Type == provisioner })
}

// TraitsOfTree returns the traits of the type whose volumes can be a filesystem by themselves;
// zero for a filesystem that is made on a block device.
func TraitsOfTree(filesystem string) Traits {
	return row(func(t Traits) bool { return filesystem != "" && t.Tree == filesystem })
}

// TypeOf returns the type of a pool by the form of its name.
func TypeOf(pool string) string {
	return row(func(t Traits) bool {
		return strings.HasPrefix(pool, t.Prefix) && (!t.Slash || strings.Contains(pool, "/"))
	}).Type
}

func row(is func(Traits) bool) Traits {
	if i := slices.IndexFunc(table, is); i >= 0 {
		return table[i]
	}
	return Traits{}
}

// Trees are the filesystems that volumes can be by themselves.
func Trees() (trees []string) {
	for _, t := range table {
		if t.Tree != "" {
			trees = append(trees, t.Tree)
		}
	}
	return trees
}

// Filesystems are all those that a volume can bear or be.
func Filesystems() []string { return append([]string{Ext4, XFS}, Trees()...) }

// ByItself returns the filesystem if volumes can be it by themselves; empty for one that is made
// on a block device.
func ByItself(filesystem string) string { return TraitsOfTree(filesystem).Tree }

// Default is the filesystem of a claim that asks for none.
func (t Traits) Default() string { return cmp.Or(t.Tree, Ext4) }

// Filesystems are those that its volumes can bear or be.
func (t Traits) Filesystems() (filesystems []string) {
	if t.Devices {
		filesystems = append(filesystems, Ext4, XFS)
	}
	if t.Tree != "" {
		filesystems = append(filesystems, t.Tree)
	}
	return filesystems
}

// Has says whether a volume can be that filesystem by itself or, if tree is empty, a block
// device.
func (t Traits) Has(tree string) bool {
	if tree == "" {
		return t.Devices
	}
	return t.Tree == tree
}

// FillsUp says whether its pools promise more than they hold, so that they can fill up.
func (t Traits) FillsUp() bool { return t.Kind == ledger.Thin }
