package provision

import (
	"fmt"
	"regexp"
)

// Tuning says how a pool stores a volume. The backend records it with the volume. The zero value
// leaves the block size to the backend, and the rest to the pool.
type Tuning struct {
	// BlockSize of a block device in bytes. It never changes, and a copy has its source's.
	BlockSize int64
	// Compression in the backend's words; empty for that of the pool, also when it changes. A
	// copy has its own, for data that is written to the copy.
	Compression string
	// RecordSize is the largest block of a file in a tree, in bytes; 0 for that of the pool, also
	// when it changes. A copy has its own, for files that are written to the copy.
	RecordSize int64
}

// Tunings bounds the Tuning of the volumes of a type. Sizes are powers of two.
type Tunings struct {
	Blocks, Records Span
	Compression     *regexp.Regexp
}

// check returns ErrInvalid for a Tuning that volumes of the type cannot have.
func (o Tuning) check(t Traits) error {
	if o == (Tuning{}) {
		return nil
	}
	if t.Tunings == nil {
		return fmt.Errorf("%w: the volumes of type %s are not tuned", ErrInvalid, t.Type)
	}
	b := *t.Tunings
	switch {
	case o.BlockSize != 0 && !b.Blocks.hasPower(o.BlockSize):
		return fmt.Errorf("%w: blocks of %d bytes: volumes of type %s have a power of two from %d to %d", ErrInvalid, o.BlockSize, t.Type, b.Blocks.Least, b.Blocks.Most)
	case o.RecordSize != 0 && !b.Records.hasPower(o.RecordSize):
		return fmt.Errorf("%w: records of %d bytes: volumes of type %s have a power of two from %d to %d", ErrInvalid, o.RecordSize, t.Type, b.Records.Least, b.Records.Most)
	case o.Compression != "" && !b.Compression.MatchString(o.Compression):
		return fmt.Errorf("%w: type %s has no compression %q", ErrInvalid, t.Type, o.Compression)
	}
	return nil
}

// hasPower says whether a number is a power of two within the span.
func (s Span) hasPower(n int64) bool {
	return int64(s.Least) <= n && n <= int64(s.Most) && n&(n-1) == 0
}
