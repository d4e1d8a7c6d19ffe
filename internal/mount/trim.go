package mount

import (
	"cmp"
	"fmt"

	"berth.dev/berth/internal/provision"
)

// TrimRequest asks a mounted filesystem to discard the free blocks in a part of it.
type TrimRequest struct {
	// Content of the volume, a block device with a filesystem.
	Content provision.Content
	// Target directory where it is mounted.
	Target string
	// Start and Length of the part, in bytes from the beginning of the filesystem.
	Start, Length int64
}

// Trimmed is what came of a trim.
type Trimmed struct {
	// Bytes that the filesystem has discarded. It may leave out those that it discarded before.
	Bytes int64
	// Next is the byte from which the filesystem was not looked at: at least the end of the part. Zero means that
	// the filesystem has no bytes there.
	Next int64
}

// Check returns ErrInvalid for a request that can never be met, and ErrUnsupported for a volume that is no
// block device: what such a volume frees is free at once.
func (r TrimRequest) Check() error {
	switch {
	case r.Content.IsTree():
		return fmt.Errorf("%w: %.300q is no filesystem on a block device, so there is nothing to trim", provision.ErrUnsupported, r.Content.Source)
	case r.Start < 0, r.Length <= 0, r.Start+r.Length < 0:
		return fmt.Errorf("%w: %d bytes from %d on are no part of a filesystem", provision.ErrInvalid, r.Length, r.Start)
	}
	return cmp.Or(checkContent(r.Content), checkPaths(r.Target))
}
