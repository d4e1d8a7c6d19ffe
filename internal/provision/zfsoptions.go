package provision

import (
	"fmt"
	"regexp"
)

// ZFSOptions say how ZFS stores a volume in a zpool. ZFS records them with the volume.
// The zero value leaves compression and record size to the pool.
type ZFSOptions struct {
	// BlockSize of a zvol in bytes, a power of two from MinZFSBlock to MaxZFSBlock; 0 is
	// DefaultZFSBlock. It never changes, and a copy has its source's.
	BlockSize int64
	// Compression in ZFS's words; empty for that of the pool, also when it changes. A
	// copy has its own, for data that is written to the copy.
	Compression string
	// RecordSize is the largest block of a file in a dataset in bytes, a power of two from
	// MinZFSRecord to MaxZFSRecord; 0 for that of the pool, also when it changes. A copy
	// has its own, for files that are written to the copy.
	RecordSize int64
}

// The bounds of RecordSize, in bytes.
const (
	MinZFSRecord = 512
	MaxZFSRecord = 1 << 20
)

// The bounds and the default of BlockSize, in bytes. ZFS accepts smaller blocks, but the
// pointers to those need more room than Berth charges for a volume.
const (
	MinZFSBlock     = 8 << 10
	DefaultZFSBlock = 16 << 10
	MaxZFSBlock     = 128 << 10
)

var zfsCompression = regexp.MustCompile(`^(on|off|lz4|lzjb|zle|gzip(-[1-9])?|zstd(-([1-9]|1[0-9]))?|zstd-fast(-([1-9]|[1-9]0|100|500|1000))?)$`)

func (o ZFSOptions) check() error {
	switch size := o.BlockSize; {
	case size != 0 && (size < MinZFSBlock || size > MaxZFSBlock || size&(size-1) != 0):
		return fmt.Errorf("%w: blocks of %d bytes: ZFS's volumes here have a power of two from %d to %d", ErrInvalid, size, MinZFSBlock, MaxZFSBlock)
	case o.RecordSize != 0 && (o.RecordSize < MinZFSRecord || o.RecordSize > MaxZFSRecord || o.RecordSize&(o.RecordSize-1) != 0):
		return fmt.Errorf("%w: records of %d bytes: ZFS's filesystems here have a power of two from %d to %d", ErrInvalid, o.RecordSize, MinZFSRecord, MaxZFSRecord)
	case o.Compression != "" && !zfsCompression.MatchString(o.Compression):
		return fmt.Errorf("%w: ZFS has no compression %q", ErrInvalid, o.Compression)
	}
	return nil
}
