package provision

import "fmt"

// Wipe says how a deleted volume's bytes are erased before another volume may have its space.
// The empty value means WipeDiscard.
type Wipe string

const (
	// WipeDiscard lets the disk discard them where the kernel guarantees that they read as
	// zeros then, and overwrites them with zeros elsewhere.
	WipeDiscard Wipe = "Discard"
	// WipeZero overwrites them with zeros.
	WipeZero Wipe = "Zero"
	// WipeNone leaves them in place: the next volume in that space can read them.
	WipeNone Wipe = "None"
)

func (w Wipe) check() error {
	switch w {
	case "", WipeDiscard, WipeZero, WipeNone:
		return nil
	}
	return fmt.Errorf("%w: wiping %q is not one of %s, %s, %s", ErrInvalid, string(w), WipeDiscard, WipeZero, WipeNone)
}
