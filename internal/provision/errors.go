package provision

import (
	"errors"
	"fmt"
	"strings"
)

// The classes of a provisioner's errors. Every error that leaves a Provisioner
// wraps one of them or a context error; what wraps none is transient.
var (
	// ErrNoSpace: the pool lacks room. Final here, another node may do.
	ErrNoSpace = errors.New("no space")
	// ErrNotFound: no such volume on this node.
	ErrNotFound = errors.New("volume not found")
	// ErrPoolMissing: no such pool on this node.
	ErrPoolMissing = errors.New("pool not found")
	// ErrConflict: something of that name exists and is different.
	ErrConflict = errors.New("conflict")
	// ErrInvalid: the request can never be met.
	ErrInvalid = errors.New("invalid request")
	// ErrUnsupported: the pool's provisioner cannot do that.
	ErrUnsupported = errors.New("not supported")
	// ErrInUse: the device is open.
	ErrInUse = errors.New("in use")
	// ErrUnavailable: the provisioner cannot be reached or does not answer, or the
	// pool has a problem. Transient.
	ErrUnavailable = errors.New("provisioner unavailable")
)

// Unavailable returns err as an ErrUnavailable; one that is an ErrUnavailable already
// stays as it is, so that no message says it twice.
func Unavailable(err error) error {
	if errors.Is(err, ErrUnavailable) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// Problem returns the text of err for the Problem of a volume or pool. Who refuses to use
// one says ErrUnavailable itself, so the text does not begin with it.
func Problem(err error) string {
	return strings.TrimPrefix(err.Error(), ErrUnavailable.Error()+": ")
}
