package provision

import "fmt"

// Wipe is what becomes of a deleted volume's bytes before others may have its space.
// The empty one is WipeDiscard.
type Wipe string

const (
	// WipeDiscard lets the disk drop them where the kernel vouches that they read as
	// zeros then, and overwrites them with zeros elsewhere.
	WipeDiscard Wipe = "Discard"
	// WipeZero overwrites them with zeros.
	WipeZero Wipe = "Zero"
	// WipeNone leaves them to whoever gets the space.
	WipeNone Wipe = "None"
)

func (w Wipe) check() error {
	switch w {
	case "", WipeDiscard, WipeZero, WipeNone:
		return nil
	}
	return fmt.Errorf("%w: wiping %q is not one of %s, %s, %s", ErrInvalid, string(w), WipeDiscard, WipeZero, WipeNone)
}
