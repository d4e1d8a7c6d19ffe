package ordered

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/shared"
)

// appears is how long a device may take to appear after a controller has said that the disk is attached. Then
// the attachment counts as failed, and is made anew.
const appears = 2 * time.Minute

// Book has the orders of one node. It outlives the agent and the machine.
type Book interface {
	// Read returns the node's order for a disk, false if there is none. It answers from no cache: an older answer
	// may say that nothing is attached.
	Read(ctx context.Context, d shared.Disk) (ownership.Order, bool, error)
	// Place places an order in place of the node's last one.
	Place(ctx context.Context, d shared.Disk, wish ownership.Wish) error
}

// Disks are shared disks that a controller attaches, on one node.
type Disks struct {
	shared.Disks // what the machine does by itself
	book         Book
	clock        clock.PassiveClock

	mu sync.Mutex
	// kept are the volumes whose newest order this process knows to be carried out: it alone places them.
	// What it has forgotten it reads again. turns counts the orders, for a Look that overlaps with the next one.
	kept  map[string]bool
	turns map[string]uint64
	// answered is since when this process knows the answer to an order, by volume. The answer's own time is that of
	// the controller's clock.
	answered map[string]known
}

// known is the answer to the order of an id.
type known struct {
	id    string
	since time.Time
}

var _ shared.Disks = (*Disks)(nil)

// New returns the disks of a node. machine is what the node does by itself.
func New(machine shared.Disks, book Book, c clock.PassiveClock) *Disks {
	return &Disks{Disks: machine, book: book, clock: c, kept: map[string]bool{}, turns: map[string]uint64{}, answered: map[string]known{}}
}

// Capabilities implements shared.Disks.
func (p *Disks) Capabilities() shared.Capabilities {
	c := p.Disks.Capabilities()
	c.Attacher = shared.ByController
	return c
}

// Look implements shared.Disks. A device counts only under an order that was carried out: one that is there
// without an order is what a late operation left, and one before the answer may be about to go.
func (p *Disks) Look(ctx context.Context, d shared.Disk) (shared.View, error) {
	kept, turn := p.keeps(d)
	view, err := p.Disks.Look(ctx, d)
	if err != nil {
		return shared.View{}, err
	}
	here := view.Link == ownership.Attached
	if here && kept {
		return view, nil
	}
	order, found, err := p.book.Read(ctx, d)
	switch {
	case err != nil:
		return shared.View{}, provision.Unavailable(fmt.Errorf("reading the order of this node for volume %s: %w", d.Volume, err))
	case !found && !here:
		return shared.View{}, nil
	case !found:
		return failed("the disk is attached, and this node has not ordered it"), nil
	case order.Wish == ownership.ToDetach, order.State == ownership.Placed:
		return shared.View{Disk: ownership.Disk{Link: ownership.Attaching}}, nil
	case order.State == ownership.Refused:
		return failed(order.Problem), nil
	case here:
		p.keep(d, turn)
		return view, nil
	case p.knows(d, order.ID) > appears:
		return failed(fmt.Sprintf("a controller has said at %s that the disk is attached, and no device of its identity has appeared for %v",
			order.Since.UTC().Format(time.RFC3339), appears)), nil
	}
	// The kernel was told to forget the device, or has not noticed it yet.
	return shared.View{Disk: ownership.Disk{Link: ownership.Attaching}}, p.Disks.Attach(ctx, d)
}

// knows is for how long this process has known the answer to an order.
func (p *Disks) knows(d shared.Disk, id string) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	if p.answered[d.Volume].id != id {
		p.answered[d.Volume] = known{id, now}
	}
	return now.Sub(p.answered[d.Volume].since)
}

func failed(problem string) shared.View {
	return shared.View{Disk: ownership.Disk{Link: ownership.AttachFailed}, Problem: problem}
}

// Attach implements shared.Disks: it orders the disk.
func (p *Disks) Attach(ctx context.Context, d shared.Disk) error {
	order, found, err := p.book.Read(ctx, d)
	if err != nil {
		return err
	}
	if found && order.Wish == ownership.ToAttach && order.State != ownership.Refused {
		return nil
	}
	p.drop(d)
	return p.book.Place(ctx, d, ownership.ToAttach)
}

// Detach implements shared.Disks: it lets go of the device, and orders the detach.
func (p *Disks) Detach(ctx context.Context, d shared.Disk) error {
	order, found, err := p.book.Read(ctx, d)
	if err != nil {
		return err
	}
	if !found {
		view, err := p.Disks.Look(ctx, d)
		if err != nil {
			return err
		}
		if view.Link != ownership.Attached {
			return nil
		}
		// No caller was given this device. Once the kernel has forgotten it, the order alone tells of it: so
		// the order comes first.
		if err := p.Disks.Flush(ctx, d); errors.Is(err, provision.ErrInUse) {
			return err
		}
		if err := p.book.Place(ctx, d, ownership.ToDetach); err != nil {
			return err
		}
	}
	p.drop(d)
	if err := p.Disks.Detach(ctx, d); err != nil {
		return err
	}
	if !found || order.Wish == ownership.ToDetach {
		return nil
	}
	return p.book.Place(ctx, d, ownership.ToDetach)
}

func (p *Disks) keeps(d shared.Disk) (kept bool, turn uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.kept[d.Volume], p.turns[d.Volume]
}

func (p *Disks) keep(d shared.Disk, turn uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.turns[d.Volume] == turn {
		p.kept[d.Volume] = true
	}
}

// drop comes before an order, and before the device goes.
func (p *Disks) drop(d shared.Disk) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.kept, d.Volume)
	delete(p.answered, d.Volume)
	p.turns[d.Volume]++
}
