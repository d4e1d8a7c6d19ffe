package v1alpha1

// ZFSPools names the zpools of a class, and the properties of volumes in them. A change of
// these properties applies to volumes that are made later: ZFS records them with each volume.
//
// +kubebuilder:validation:XValidation:rule="!has(self.create) || self.pools.size() == 1 && self.pools[0].matches('^[^/]+$')",message="create: pools must name the one zpool that is to be made"
// +kubebuilder:validation:XValidation:rule="!has(self.create) || !self.pools[0].matches('^(mirror|raidz|draid|spare|c[0-9]|log$)')",message="create: ZFS keeps that name for itself"
type ZFSPools struct {
	// pools are existing zpools (tank), or filesystems in them that have the mark of a pool
	// (tank/berth, after zfs set berth.dev:pool=tank/berth tank/berth). A node serves the
	// class from those of them that it has.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(p, !p.matches('(^|/)berth-(volumes|trash|copies)(/|$)'))",message="pools: berth-volumes, berth-trash and berth-copies are filesystems that Berth makes for itself"
	// +kubebuilder:validation:items:MaxLength=100
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z][A-Za-z0-9_.-]*(/[A-Za-z0-9][A-Za-z0-9_.-]*)*$`
	Pools []string `json:"pools"`

	// create lets Berth make the zpool, grow it, and import it when the node starts.
	// +optional
	Create *ZpoolCreation `json:"create,omitempty"`

	// volblocksize is the block size of a volume that is a block device, or has ext4 or xfs
	// on it: small blocks suit databases, large blocks compress better and take less
	// metadata. A copy has the block size of its source.
	// +optional
	// +kubebuilder:default="16Ki"
	Volblocksize Volblocksize `json:"volblocksize,omitempty"`

	// recordsize is the largest block of a file in a volume of filesystem zfs. For a database,
	// use the size of its pages. Without it a volume follows the recordsize of its pool, also
	// when that changes. A copy has its own, which applies to files that are written to it.
	// +optional
	Recordsize Recordsize `json:"recordsize,omitempty"`

	// compression of the data that is written to a volume: on, off, lz4, zle, lzjb, gzip or
	// gzip-1 to gzip-9, zstd or zstd-1 to zstd-19, zstd-fast or zstd-fast-1 to zstd-fast-1000.
	// Without it a volume follows the compression of its pool, also when that changes.
	// +optional
	// +kubebuilder:validation:MaxLength=14
	// +kubebuilder:validation:Pattern=`^(on|off|lz4|lzjb|zle|gzip(-[1-9])?|zstd(-([1-9]|1[0-9]))?|zstd-fast(-([1-9]|[1-9]0|100|500|1000))?)$`
	Compression string `json:"compression,omitempty"`
}

// Recordsize is a size that ZFS allows for the records of files.
//
// +kubebuilder:validation:Enum="512";"1Ki";"2Ki";"4Ki";"8Ki";"16Ki";"32Ki";"64Ki";"128Ki";"256Ki";"512Ki";"1Mi"
type Recordsize string

// Volblocksize is a block size that ZFS allows for volumes. ZFS allows smaller ones, too,
// but the pointers to those take more room than Berth charges for a volume.
//
// +kubebuilder:validation:Enum="8Ki";"16Ki";"32Ki";"64Ki";"128Ki"
type Volblocksize string
