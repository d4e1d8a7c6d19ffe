// Package signal tells a goroutine that something has changed.
package signal

// Signal tells one receiver that something has changed since it last received. Several
// calls of Set before the receiver looks count as one. Receive from it as from any channel.
type Signal chan struct{}

// New returns a signal that is not set.
func New() Signal { return make(Signal, 1) }

// Set sets the signal. It never blocks.
func (s Signal) Set() {
	select {
	case s <- struct{}{}:
	default: // the receiver has not looked since the last call
	}
}
