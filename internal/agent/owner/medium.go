package owner

import (
	"context"
	"time"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/journal"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
)

// Medium is what the replicas of an Owner's volumes are: attachments of shared disks (Attachments), or copies
// in the node's pools (Copies). Owners differ in nothing else. All methods but recall are called under the
// volume's lock.
type Medium interface {
	// data says whether each replica has data of its own: Traits.Data of the volumes that are served.
	data() bool

	// recall puts into the look what the node keeps durably of the volume, and what the rules call its copy. It
	// needs no record.
	recall(ctx context.Context, o *Owner, l *look) error
	// identify makes sure that the Volume is the one that the node keeps, before its record is believed.
	identify(o *Owner, l *look, object *v1alpha1.Volume) error
	// survey adds the facts that come last: those that change without this node.
	survey(ctx context.Context, o *Owner, l *look)

	// mark keeps a promise, or that an epoch is opened or closed, durably.
	mark(ctx context.Context, o *Owner, l *look, m provision.Mark) error
	// carryOut carries out the actions that are not the same for all media.
	carryOut(ctx context.Context, o *Owner, l *look, do ownership.Action) (more bool, err error)

	// ready makes the volume one that can be mounted in the epoch that the node has opened, and returns it.
	ready(ctx context.Context, o *Owner, l *look) (provision.Content, error)
	// flushed returns nil if every write of a volume that was just unmounted has reached the disk, and
	// ErrInUse if something still has it.
	flushed(ctx context.Context, o *Owner, l *look) error

	// stirs says whether a volume in use needs the rules, though neither its record has changed nor a kubelet asks.
	stirs(ctx context.Context, o *Owner, k *journal.Kept) bool
	// rests is how long a volume is left alone after a decision, if nothing happens before; zero is for ever.
	rests(do ownership.Action) time.Duration
	// answer adds to the answer for an asker what only this medium knows.
	answer(ctx context.Context, o *Owner, l *look, asker string, v *ownership.Volume, p *ownership.Peer) error
}
