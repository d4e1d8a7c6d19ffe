package provision

import "fmt"

// Spare is what must stay free in a pool: both parts together.
type Spare struct {
	Bytes int64
	// Percent of the pool's total size, rounded up to a byte.
	Percent int
}

// In returns the spare bytes of a pool of that size, for a spare and a size that
// the checks have passed.
func (s Spare) In(total int64) int64 {
	share := int64(s.Percent)
	// Hundreds and rest apart, so that it cannot overflow.
	return s.Bytes + total/100*share + (total%100*share+99)/100
}

func (s Spare) check() error {
	if s.Bytes < 0 || s.Bytes > MaxSize {
		return fmt.Errorf("%w: spare %d is not between 0 and %d bytes", ErrInvalid, s.Bytes, int64(MaxSize))
	}
	if s.Percent < 0 || s.Percent > 100 {
		return fmt.Errorf("%w: a spare of %d percent is not between 0 and 100", ErrInvalid, s.Percent)
	}
	return nil
}
