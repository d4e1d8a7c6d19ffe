package iscsi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"berth.dev/berth/internal/keyed"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/iscsi/scsi"
	"berth.dev/berth/internal/provision/shared"
	"berth.dev/berth/internal/run"
)

// Config of the provisioner on one node.
type Config struct {
	Runner run.Runner
	Kernel Kernel
	// Used names something on the machine that has a block device open or mounted, in any mount
	// namespace; empty if nothing has: guard/holders.Used. Devices are numbered "8:16".
	Used func(device string) (string, error)
	// Promises are what every target that this node uses is to keep. A disk of a target that does not say so is
	// refused when it is attached, and each time that its reservation is to be taken. Types are not read.
	Promises shared.Capabilities
	// Interface is the record of open-iscsi by which the node logs in, "default" if it is empty.
	// If it is set, the sessions of other records are another node's, and not looked at: so one
	// kernel can play several nodes.
	Interface string
	// Patience is how long one call may wait for a disk; 10 seconds if it is zero. Whatever is
	// under way then goes on, and the disk takes no other call until it has ended.
	Patience time.Duration
}

// Disks are the iSCSI disks of a node.
type Disks struct {
	c     Config
	tasks run.Tasks
	// targets are locked by each login, logout and search for units.
	targets keyed.Locks[string]

	mu sync.Mutex
	// seats of the disks that something is under way for or was learnt of, by LUN and target.
	seats map[seatKey]*seat
}

type seatKey struct {
	target string
	lun    int
}

// seat is what is remembered of a disk.
type seat struct {
	// doing is the name of the call that is under way; empty if none is. Its caller waits until the end of until.
	doing string
	until context.Context //nolint:containedctx // other calls wait for its end
	// program is since when the call runs iscsiadm; zero while it does not.
	program time.Time
	// failed is why the last attach failed, until the next one, or a detach.
	failed error
	// lost: a flush failed. The kernel says so once only.
	lost bool
	// key that was last seen as the session's, to ask for it first.
	key uint64
	// proved is what the last reading has proved. A condition that the target reports ends it.
	proved *proof
}

var (
	_ shared.Disks   = (*Disks)(nil)
	_ shared.Glancer = (*Disks)(nil)
)

// New returns the provisioner. Its owner calls Wait before it ends.
func New(c Config) *Disks {
	c.Patience = cmp.Or(c.Patience, 10*time.Second)
	return &Disks{c: c, seats: map[seatKey]*seat{}}
}

// Wait returns when nothing is under way.
func (p *Disks) Wait() { p.tasks.Wait() }

// Capabilities implements shared.Disks.
func (p *Disks) Capabilities() shared.Capabilities {
	return shared.Capabilities{
		Abort: p.c.Promises.Abort, Persistent: p.c.Promises.Persistent, Types: []shared.Type{shared.WriteExclusive, shared.WriteExclusiveRegistrantsOnly},
	}
}

const (
	attaching = "attach"
	detaching = "detach"
	looking   = "look"
)

// sit takes a disk's seat for a call, or says which call has it. A volume in use is looked at each second, which
// must fail no other call: ctx, the call's own, is how long that waits for a look. It does not wait for one that
// was left behind: nothing says when that ends.
func (p *Disks) sit(ctx context.Context, h Handle, name string) (s *seat, other string) {
	for {
		s, other, look := p.take(ctx, h, name)
		if look == nil {
			return s, other
		}
		select {
		case <-look.Done():
		case <-ctx.Done():
			return nil, other
		}
	}
}

// take is sit without the wait. look is what to wait for, if that may help.
func (p *Disks) take(ctx context.Context, h Handle, name string) (s *seat, other string, look context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := seatKey{h.Target, h.LUN}
	if p.seats[k] == nil {
		p.seats[k] = &seat{}
	}
	switch s = p.seats[k]; {
	case s.doing == "":
		s.doing, s.until = name, ctx
		return s, "", nil
	case s.doing == looking && s.until.Err() == nil:
		return nil, s.doing, s.until
	}
	return nil, s.doing, nil
}

// leave gives a seat up. One without anything to remember goes.
func (p *Disks) leave(h Handle, s *seat) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.doing, s.until = "", nil
	if *s == (seat{}) {
		delete(p.seats, seatKey{h.Target, h.LUN})
	}
}

// attachingOther tells a look whether another unit of the target is about to be attached or detached.
// The seat of the disk itself is the look's.
func (p *Disks) attachingOther(h Handle) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for k, s := range p.seats {
		if k.target == h.Target && (s.doing == attaching || s.doing == detaching) {
			return true
		}
	}
	return false
}

// call is one call for a disk.
type call struct {
	*Disks
	*seat
	Handle
	disk shared.Disk
}

var errPatience = errors.New("the disk has not answered in time")

// do lets f work on a disk, for as long as the context and the patience last. f asks its context
// between steps, and a step that hangs is left behind.
func (p *Disks) do(ctx context.Context, d shared.Disk, name string, f func(context.Context, call) error) error {
	_, err := answer(ctx, p, d, name, func(ctx context.Context, c call) (struct{}, error) { return struct{}{}, f(ctx, c) })
	return err
}

// answer is do for a call that finds something out. What f returns too late is dropped.
func answer[T any](ctx context.Context, p *Disks, d shared.Disk, name string, f func(context.Context, call) (T, error)) (out T, err error) {
	if err := ctx.Err(); err != nil {
		return out, context.Cause(ctx)
	}
	h, err := ParseHandle(d.Handle)
	if err != nil {
		return out, fmt.Errorf("%w: volume %s: %w", provision.ErrInvalid, d.Volume, err)
	}
	if d.Identity == "" {
		return out, errNameless(d)
	}
	limited, cancel := context.WithTimeoutCause(ctx, p.c.Patience, errPatience)
	defer cancel()
	s, other := p.sit(limited, h, name)
	if s == nil {
		return out, underWayError(other)
	}
	out, err = run.Do(limited, &p.tasks, func(context.Context) (T, error) {
		defer p.leave(h, s)
		return f(limited, call{p, s, h, d})
	})
	if errors.Is(err, errPatience) {
		err = fmt.Errorf("%w: %w: %s", provision.ErrUnavailable, err, h)
	}
	return out, err
}

func errNameless(d shared.Disk) error {
	return fmt.Errorf("%w: volume %s does not say what its disk is to call itself", provision.ErrInvalid, d.Volume)
}

// underWayError is the error of a call for a disk while another one is under way.
type underWayError string

func (u underWayError) Error() string {
	return fmt.Sprintf("%v: an earlier call, %s, is under way for the disk", provision.ErrUnavailable, string(u))
}

func (underWayError) Unwrap() error { return provision.ErrUnavailable }

// Look implements shared.Disks.
func (p *Disks) Look(ctx context.Context, d shared.Disk) (shared.View, error) {
	return p.view(ctx, d, nexus.study)
}

// Glance implements shared.Glancer.
func (p *Disks) Glance(ctx context.Context, d shared.Disk) (shared.View, error) {
	return p.view(ctx, d, nexus.trust)
}

func (p *Disks) view(ctx context.Context, d shared.Disk, read reader) (shared.View, error) {
	v, err := answer(ctx, p, d, looking, func(ctx context.Context, c call) (shared.View, error) { return c.look(ctx, read) })
	if by, _ := errors.AsType[underWayError](err); by == attaching || by == detaching {
		return p.underWay(d), nil
	}
	if err != nil {
		return shared.View{}, err
	}
	return v, nil
}

// underWay is the view of a disk that is being attached or detached. iscsiadm asks iscsid without a limit of its
// own, and is not killed, because that would leave half a session. So one that hangs is told of.
func (p *Disks) underWay(d shared.Disk) shared.View {
	h, _ := ParseHandle(d.Handle)
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.seats[seatKey{h.Target, h.LUN}]
	if s == nil || s.program.IsZero() || time.Since(s.program) < attachLimit {
		return shared.View{Disk: ownership.Disk{Link: ownership.Attaching}}
	}
	return failed(fmt.Sprintf("%s has not ended since %s: restart iscsid, and then the agent of shared disks, on this node",
		Program, s.program.UTC().Format(time.RFC3339)))
}

// reader is study or trust.
type reader func(nexus, context.Context, *Session) (state, error)

func (c call) look(ctx context.Context, read reader) (shared.View, error) {
	at, err := c.find()
	switch {
	case err != nil:
		return shared.View{}, err
	case c.failed != nil:
		return failed(provision.Problem(c.failed)), nil
	case c.vacant(at.session) && !c.attachingOther(c.Handle):
		return failed("an attach was interrupted after the login"), nil
	case at.unit == nil:
		return shared.View{}, nil
	case at.session.LoggedIn && at.unit.State == givenUp:
		return failed(fmt.Sprintf("the kernel has given unit %s up (%s); it is attached anew when nothing has it open", at.unit.Address, givenUp)), nil
	}
	n, err := c.open(ctx, at, false)
	if err != nil {
		return shared.View{}, err
	}
	defer n.dev.Close()
	state, err := read(n, ctx, at.session)
	if err != nil {
		return shared.View{}, err
	}
	return shared.View{
		Disk:    state.view(),
		Content: provision.Content{Source: at.unit.Path, Identity: at.unit.Identity},
	}, nil
}

// failed is the view of a disk of which something may be left that is to be detached.
func failed(problem string) shared.View {
	return shared.View{Disk: ownership.Disk{Link: ownership.AttachFailed}, Problem: problem}
}

// Register implements shared.Disks.
func (p *Disks) Register(ctx context.Context, d shared.Disk, key ownership.RawKey, use shared.Use) error {
	return p.do(ctx, d, "register", func(ctx context.Context, c call) error {
		at, err := c.attached()
		if err != nil {
			return err
		}
		n, err := c.open(ctx, at, use == shared.Idle)
		if err != nil {
			return err
		}
		defer n.dev.Close()
		if use == shared.Idle {
			// Pages are dropped before the session may write: while the reservation is another
			// session's, the target refuses them. Sync takes their error off the device, so that
			// the next flush does not report it.
			_ = n.dev.Sync()
			if err := n.dev.Drop(); err != nil {
				return provision.Unavailable(fmt.Errorf("dropping the pages of %s: %w", at.unit.Path, err))
			}
			if err := c.c.Kernel.Rescan(*at.unit); err != nil {
				return provision.Unavailable(err)
			}
			c.lost = false
		}
		if use == shared.Idle && c.disk.ManyWriters {
			return n.enter(ctx, uint64(key))
		}
		return n.register(ctx, uint64(key))
	})
}

// Reserve implements shared.Disks.
func (p *Disks) Reserve(ctx context.Context, d shared.Disk, expect, key ownership.RawKey) error {
	return p.with(ctx, d, "reserve", func(ctx context.Context, n nexus) error {
		return n.reserve(ctx, uint64(expect), uint64(key))
	})
}

// with lets f use the open device of a disk that is attached.
func (p *Disks) with(ctx context.Context, d shared.Disk, name string, f func(context.Context, nexus) error) error {
	return p.do(ctx, d, name, func(ctx context.Context, c call) error {
		at, err := c.attached()
		if err != nil {
			return err
		}
		n, err := c.open(ctx, at, false)
		if err != nil {
			return err
		}
		defer n.dev.Close()
		return f(ctx, n)
	})
}

// Flush implements shared.Disks.
func (p *Disks) Flush(ctx context.Context, d shared.Disk) error {
	return p.do(ctx, d, "flush", func(ctx context.Context, c call) error {
		at, err := c.attached()
		if err != nil {
			return err
		}
		n, err := c.open(ctx, at, true)
		if err != nil {
			return err
		}
		defer n.dev.Close()
		if err := errors.Join(n.dev.Sync(), n.dev.Drop()); err != nil {
			c.lost = true
			return provision.Unavailable(fmt.Errorf("flushing %s: %w", at.unit.Path, err))
		}
		state, err := n.read(ctx)
		switch {
		case err != nil:
			return err
		case c.lost:
			return fmt.Errorf("%w: an earlier flush of %s failed", provision.ErrUnavailable, at.unit.Path)
		case !state.writes():
			return fmt.Errorf("%w: the disk is reserved for another session (key %#x), and may have refused writes", provision.ErrConflict, state.holder)
		}
		return nil
	})
}

// The types of the reservations that are made here.
const (
	writeExclusive  = scsi.WriteExclusive
	registrantsOnly = scsi.WriteExclusiveRegistrantsOnly
)

// kind is the type of the reservation that the disk is to have.
func (c call) kind() scsi.Type {
	if c.disk.ManyWriters {
		return registrantsOnly
	}
	return writeExclusive
}
