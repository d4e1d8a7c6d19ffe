package provision

import (
	"fmt"

	"berth.dev/berth/api/v1alpha1"
)

// Wipe says how a deleted volume's bytes are erased before another volume may have its space.
// The empty value means WipeDiscard.
type Wipe string

const (
	// WipeDiscard lets the disk discard them where the kernel guarantees that they read as
	// zeros then, and overwrites them with zeros elsewhere.
	WipeDiscard = Wipe(v1alpha1.WipeDiscard)
	// WipeZero overwrites them with zeros.
	WipeZero = Wipe(v1alpha1.WipeZero)
	// WipeNone leaves them in place: the next volume in that space can read them.
	WipeNone = Wipe(v1alpha1.WipeNone)
)

func (w Wipe) check() error {
	switch w {
	case "", WipeDiscard, WipeZero, WipeNone:
		return nil
	}
	return fmt.Errorf("%w: wiping %q is not one of %s, %s, %s", ErrInvalid, string(w), WipeDiscard, WipeZero, WipeNone)
}
