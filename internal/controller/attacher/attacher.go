package attacher

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"berth.dev/berth/internal/decide/attach"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/shared"
)

const (
	// callLimit is how long one call to a cloud may take. Operations go on after their call.
	callLimit = 30 * time.Second
	// steps is how many steps are taken in a row, before other machines have their turn.
	steps = 32
)

// Order is an order about a disk.
type Order struct {
	Disk shared.Disk
	ownership.Order
}

// Book has the orders of all nodes.
type Book interface {
	// Orders returns the orders of a node. They may be old.
	Orders(ctx context.Context, node string) ([]Order, error)
	// Still says whether the node's order about a disk is the one of this id, now.
	Still(ctx context.Context, node string, o Order) (bool, error)
	// Answer answers the order of one id, if the node still has it: else nothing happens. done takes it away.
	Answer(ctx context.Context, node string, o Order, state ownership.OrderState, problem string, done bool) error
}

// Attacher carries out the orders that nodes place at one cloud.
type Attacher struct {
	cloud shared.Cloud
	book  Book
	clock clock.PassiveClock

	mu       sync.Mutex
	machines map[string]attach.Memory
	// throttled is until when the cloud has asked to be left alone, whichever machine it is about.
	throttled time.Time
}

// New returns an Attacher that knows nothing yet.
func New(cloud shared.Cloud, book Book, c clock.PassiveClock) *Attacher {
	return &Attacher{cloud: cloud, book: book, clock: c, machines: map[string]attach.Memory{}}
}

// Carry carries out what a node has ordered, as far as that is possible without waiting. again is when it is to
// be called next, if no order comes before; zero is never. Of two calls for one node, one must end first.
func (a *Attacher) Carry(ctx context.Context, node string) (again time.Duration, err error) {
	for range steps {
		m, orders, err := a.gather(ctx, node)
		if err != nil {
			return 0, err
		}
		step := m.Next()
		if step.Verb == attach.Pause {
			a.remember(node, m)
			if step.Until.IsZero() {
				return 0, nil
			}
			return max(step.Until.Sub(m.Now), time.Millisecond), nil
		}
		err = a.take(ctx, node, m, step, orders)
		a.remember(node, m)
		if err != nil {
			return 0, err
		}
	}
	return time.Millisecond, nil
}

// gather collects the facts of one decision.
func (a *Attacher) gather(ctx context.Context, node string) (*attach.Machine, map[string]Order, error) {
	orders, err := a.book.Orders(ctx, node)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the orders of node %s: %w", node, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	m := &attach.Machine{Now: a.clock.Now(), Memory: a.machines[node]}
	if m.NotBefore.Before(a.throttled) {
		m.NotBefore = a.throttled
	}
	byDisk := map[string]Order{}
	for _, o := range orders {
		byDisk[o.Disk.Handle] = o
		m.Orders = append(m.Orders, attach.Ordered{Disk: o.Disk.Handle, Order: o.Order})
	}
	slices.SortFunc(m.Orders, func(x, y attach.Ordered) int { return cmp.Compare(x.Disk, y.Disk) })
	m.Forget()
	return m, byDisk, nil
}

// remember keeps what is known of a machine, while there is something to do about it.
func (a *Attacher) remember(node string, m *attach.Machine) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if m.Operation == "" && len(m.Ends)+len(m.Answered) == 0 && !m.Singly && !m.NotBefore.After(m.Now) {
		delete(a.machines, node)
		return
	}
	a.machines[node] = m.Memory
}

// take takes a step.
func (a *Attacher) take(ctx context.Context, node string, m *attach.Machine, step attach.Step, orders map[string]Order) error {
	limited, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	switch step.Verb {
	case attach.Answer:
		o := orders[step.Orders[0].Disk]
		problem := ""
		if step.State == ownership.Refused {
			problem = step.Message
		}
		if err := a.book.Answer(limited, node, o, step.State, problem, step.Done); err != nil {
			return err
		}
		m.Answers(o.ID)
	case attach.Begin:
		a.begin(limited, node, m, step.Orders, orders)
	case attach.Follow:
		a.follow(limited, node, m)
	case attach.List:
		a.list(limited, node, m)
	}
	return ctx.Err()
}

func (a *Attacher) begin(ctx context.Context, node string, m *attach.Machine, batch []attach.Ordered, orders map[string]Order) {
	var on, off []shared.Disk
	for _, o := range batch {
		// An old order to detach may be about a disk that the node uses again.
		if is, err := a.book.Still(ctx, node, orders[o.Disk]); err != nil || !is {
			m.Later(0)
			return
		}
		if o.Wish == ownership.ToAttach {
			on = append(on, orders[o.Disk].Disk)
		} else {
			off = append(off, orders[o.Disk].Disk)
		}
	}
	operation, err := a.cloud.Change(ctx, node, on, off)
	switch {
	case err == nil:
		m.Began(operation, batch)
	case attach.Final(err):
		m.Refuses(batch, err)
	default:
		a.later(m, err)
	}
}

func (a *Attacher) follow(ctx context.Context, node string, m *attach.Machine) {
	progress, err := a.cloud.Progress(ctx, node, m.Operation)
	switch {
	case errors.Is(err, provision.ErrNotFound):
		m.Forgotten()
	case err != nil:
		a.later(m, err)
	case progress.Running:
		m.Runs()
	default:
		m.Ended(progress.Failed)
	}
}

func (a *Attacher) list(ctx context.Context, node string, m *attach.Machine) {
	attached, err := a.cloud.Attached(ctx, node)
	if err != nil && !errors.Is(err, provision.ErrNotFound) {
		m.Unlisted()
		a.later(m, err)
		return
	}
	m.Lists(attached)
}

// later leaves the cloud alone for a while: all of it, if it has too many requests.
func (a *Attacher) later(m *attach.Machine, err error) {
	wait := &shared.LaterError{}
	_ = errors.As(err, &wait)
	m.Later(wait.After)
	if wait.Throttled {
		a.mu.Lock()
		defer a.mu.Unlock()
		if until := m.Now.Add(wait.After); until.After(a.throttled) {
			a.throttled = until
		}
	}
}
