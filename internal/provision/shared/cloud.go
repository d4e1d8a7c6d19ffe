package shared

import (
	"context"
	"fmt"
	"time"

	"berth.dev/berth/internal/provision"
)

// Attacher says who attaches the disks of a provisioner.
type Attacher int

const (
	// ByNode: the node attaches by itself, as it logs in to a target.
	ByNode Attacher = iota
	// ByController: Disks.Attach and Disks.Detach place orders, which a controller carries out at a Cloud.
	ByController
)

// Cloud attaches disks to the machines of nodes, as a controller asks. All its methods are idempotent.
//
// A machine has one operation at a time. Operations are what a controller knows for sure: one that ended
// has had its effect, and nothing of an earlier one comes later. A listing may be older than any of them.
type Cloud interface {
	// Change begins one operation that detaches disks from the machine of a node and then attaches others. A
	// disk that is attached already, or not attached, is no error. Nothing was begun if the error is a
	// LaterError, or wraps ErrConflict, ErrNotFound, ErrNoSpace, ErrInvalid or ErrUnsupported: the cloud refuses
	// the operation as a whole, for the sake of one disk. Any other error leaves open whether it was begun.
	Change(ctx context.Context, node string, attach, detach []Disk) (operation string, err error)
	// Progress says how far an operation is. ErrNotFound: the cloud has forgotten it.
	Progress(ctx context.Context, node, operation string) (Progress, error)
	// Attached lists the handles of the disks that are attached to the machine of a node. It may be old.
	// ErrNotFound: there is no such machine, and so nothing is attached to it.
	Attached(ctx context.Context, node string) ([]string, error)
}

// Progress of an operation.
type Progress struct {
	Running bool
	// Failed are the disks, by handle, that were not attached or detached, as far as the cloud knows.
	Failed map[string]error
}

// LaterError is a cloud's answer that it does nothing now, and wants to be asked again later.
type LaterError struct {
	// After is how long from now; zero if the cloud does not say.
	After time.Duration
	// Throttled: the cloud has had too many requests, and not about this machine alone. Else the machine has
	// another operation.
	Throttled bool
}

func (e *LaterError) Error() string {
	if e.Throttled {
		return fmt.Sprintf("%v: the cloud has too many requests, and wants the next one after %v", provision.ErrUnavailable, e.After)
	}
	return fmt.Sprintf("%v: the machine has another operation", provision.ErrUnavailable)
}

func (*LaterError) Unwrap() error { return provision.ErrUnavailable }
