package v1alpha1

// ZFSPools names the zpools of a class, and how volumes are kept in them. What is said
// of volumes holds for those that are made later; ZFS records it with each.
//
// +kubebuilder:validation:XValidation:rule="!has(self.create) || self.pools.size() == 1 && self.pools[0].matches('^[^/]+$')",message="create: pools must name the one zpool that is to be made"
// +kubebuilder:validation:XValidation:rule="!has(self.create) || !self.pools[0].matches('^(mirror|raidz|draid|spare|c[0-9]|log$)')",message="create: ZFS keeps that name for itself"
type ZFSPools struct {
	// pools are existing zpools (tank), or filesystems in them that bear the mark of a pool
	// (tank/berth, after zfs set berth.dev:pool=tank/berth tank/berth). A node serves the
	// class from those that it has.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(p, !p.matches('(^|/)berth-(volumes|trash)(/|$)'))",message="pools: berth-volumes and berth-trash are filesystems that Berth makes for itself"
	// +kubebuilder:validation:items:MaxLength=100
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z][A-Za-z0-9_.-]*(/[A-Za-z0-9][A-Za-z0-9_.-]*)*$`
	Pools []string `json:"pools"`

	// create lets Berth make the zpool, grow it, and import it when the node starts.
	// +optional
	Create *ZpoolCreation `json:"create,omitempty"`

	// volblocksize is the size of the blocks of a volume that is a block device, or bears
	// ext4 or xfs: small ones suit databases, large
	// ones compress better and take less metadata. A copy has its source's.
	// +optional
	// +kubebuilder:default="16Ki"
	Volblocksize Volblocksize `json:"volblocksize,omitempty"`

	// recordsize is the largest block of a file in a volume of filesystem zfs: that of a
	// database's pages suits databases. Without it a volume has that of its pool, also when it
	// changes. A copy has its own, for the files that are written to it.
	// +optional
	Recordsize Recordsize `json:"recordsize,omitempty"`

	// compression of what is written to a volume: on, off, lz4, zle, lzjb, gzip or
	// gzip-1 to gzip-9, zstd or zstd-1 to zstd-19, zstd-fast or zstd-fast-1 to
	// zstd-fast-1000. Without it a volume has that of its pool, also when it changes.
	// +optional
	// +kubebuilder:validation:MaxLength=14
	// +kubebuilder:validation:Pattern=`^(on|off|lz4|lzjb|zle|gzip(-[1-9])?|zstd(-([1-9]|1[0-9]))?|zstd-fast(-([1-9]|[1-9]0|100|500|1000))?)$`
	Compression string `json:"compression,omitempty"`
}

// Recordsize is a size that ZFS has for the records of files.
//
// +kubebuilder:validation:Enum="512";"1Ki";"2Ki";"4Ki";"8Ki";"16Ki";"32Ki";"64Ki";"128Ki";"256Ki";"512Ki";"1Mi"
type Recordsize string

// Volblocksize is a size of blocks that ZFS has for volumes. It has smaller ones; the
// pointers to those take more room than a volume is charged for.
//
// +kubebuilder:validation:Enum="8Ki";"16Ki";"32Ki";"64Ki";"128Ki"
type Volblocksize string
