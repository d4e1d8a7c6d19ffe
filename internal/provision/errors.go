package provision

import (
	"errors"
	"fmt"
	"strings"
)

// The classes of a provisioner's errors. Every error that leaves a Provisioner
// wraps one of them or a context error; an error that wraps none is transient.
var (
	// ErrNoSpace: the pool lacks room. Final on this node; another node may have room.
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

// Unavailable returns err as an ErrUnavailable. An err that is one already is returned
// unchanged, so that no message says it twice.
func Unavailable(err error) error {
	if errors.Is(err, ErrUnavailable) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// Problem returns the text of err for the Problem of a volume or pool. A method that refuses
// to use one adds ErrUnavailable itself, so the text does not begin with it.
func Problem(err error) string {
	return strings.TrimPrefix(err.Error(), ErrUnavailable.Error()+": ")
}
