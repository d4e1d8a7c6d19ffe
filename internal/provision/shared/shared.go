package shared

import (
	"context"

	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
)

// Disk names a shared disk.
type Disk struct {
	// Volume is the id of the volume that the disk is.
	Volume string
	// Handle is the name by which the provisioner finds the disk: a portal with a LUN, or the id
	// of a cloud's disk. Only the provisioner reads it.
	Handle string
	// Identity is what the device must say of itself: its World Wide Name or serial number. A path,
	// a LUN or an answer of a cloud's list proves nothing.
	Identity provision.Identity
	// Persistent says that the volume counts on reservations that outlive the target's loss of power. On a target
	// that does not promise that a provisioner takes no reservation, and where it can it refuses to attach the disk.
	Persistent bool
	// ManyWriters says that several nodes write the disk at once. Its reservation lets all sessions write that are
	// registered (WriteExclusiveRegistrantsOnly), and a node is shut out by taking its registration away. A target that
	// has no such reservations, or loses them with its power, is refused as for Persistent.
	ManyWriters bool
}

// View is a disk as a node sees it now.
type View struct {
	ownership.Disk
	// Content is the device, while the disk is attached. Its identity has been compared.
	Content provision.Content
	// Problem says to people why an attach or a detach failed.
	Problem string
}

// Use says what may have the device open while a session registers.
type Use int

const (
	// Idle: nothing. The provisioner drops the node's old buffers and scans the device anew, so no
	// write from an earlier epoch reaches the disk under the new key.
	Idle Use = iota
	// OwnMount: the mount, or the pods, of the key's own epoch go on.
	OwnMount
)

// Type of a reservation, by its name in SPC-4.
type Type string

const (
	// WriteExclusive: the holder alone writes. A standby can be registered and still writes nothing.
	WriteExclusive Type = "WriteExclusive"
	// WriteExclusiveRegistrantsOnly: every registered session writes.
	WriteExclusiveRegistrantsOnly Type = "WriteExclusiveRegistrantsOnly"
)

// Capabilities are what a target promises about all its disks.
type Capabilities struct {
	// Abort: Reserve aborts the commands of the session that it takes the reservation from
	// (PREEMPT AND ABORT). Without it such a command is still judged when it is executed.
	Abort bool
	// Persistent: registrations and the reservation outlive the target's loss of power. Where they
	// do not, a reservation that was taken is no proof that a writer is shut out.
	Persistent bool
	// Types of reservations; never empty.
	Types []Type
	// Attacher says who attaches the disks.
	Attacher Attacher
}

// Glancer are Disks that a look costs something, such as a write at the target.
type Glancer interface {
	// Glance is Look for a caller that asks each second and rests no right on the answer: that the session is
	// registered, and holds the reservation, may be what an earlier look has proved, as long as all that would show
	// a change is unchanged.
	Glance(ctx context.Context, d Disk) (View, error)
}

// Glance is a Look at a disk that costs as little as its provisioner can have it.
func Glance(ctx context.Context, disks Disks, d Disk) (View, error) {
	if g, can := disks.(Glancer); can {
		return g.Glance(ctx, d)
	}
	return disks.Look(ctx, d)
}

// Disks are the shared disks of one provisioner, on one node. Methods may be called concurrently
// for different disks. All are idempotent: a caller that lost an answer asks again. An error leaves
// open whether the call has had its effect, and says nothing about the disk. Errors wrap those of
// package provision, or are the context's.
type Disks interface {
	Capabilities() Capabilities

	// Look returns the node's view. It waits neither for an attach nor for a path that is away.
	// A device that shows another identity is ErrConflict, and a target that does not answer is
	// ErrUnavailable: neither is a View that says Detached.
	Look(ctx context.Context, d Disk) (View, error)

	// Attach begins to attach the disk to this node, or joins an attach that is under way. It may
	// return before the device is there. Where a controller attaches, it only asks for that.
	Attach(ctx context.Context, d Disk) error

	// Detach detaches the disk and cleans up after an attach that failed. It may return before
	// that is done: only a View that says Detached proves it. ErrInUse: something has the device
	// open, in any mount namespace.
	Detach(ctx context.Context, d Disk) error

	// Register makes key the key of the node's present session, whatever it was. A session that
	// holds the reservation keeps it under the new key. Zero ends the session's registration, and the
	// reservation if it is the session's, and touches no other session's. If use is Idle and something has the device
	// open, the error is ErrInUse and nothing has changed.
	Register(ctx context.Context, d Disk, key ownership.RawKey, use Use) error

	// Reserve takes the reservation for the present session, registered under key, if its holder
	// is expect; zero is no holder. A nil error means that this was read back. If the holder is
	// another, or the session is not registered under key, the error is ErrConflict and the
	// reservation has not changed.
	//
	// Of a disk that several nodes write, Reserve takes the registrations away that have the key expect, and aborts
	// the commands of their sessions; zero takes none away, and is for a disk without a reservation. Then the disk is
	// reserved for all that are registered, by whomever. The error is ErrConflict if no registration has the key
	// expect, if another session has reserved the disk and expect is zero, if the session is not registered under key,
	// or would end its own registration. It also is if the disk was reserved in another way under another key than
	// expect: then the registrations are gone, and the reservation is left to a call that expects its key.
	Reserve(ctx context.Context, d Disk, expect, key ownership.RawKey) error

	// Flush makes sure that nothing on the node has the device open, in any mount namespace, and
	// that every write has reached the disk. ErrInUse: something has it open. Any other error
	// means that writes may be lost: a write was refused, or the target has not answered it.
	Flush(ctx context.Context, d Disk) error
}
