package simdisk

import (
	"context"
	"fmt"
	"path"
	"sync"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/shared"
)

// Node is the disk as one node sees it. A restart of the agent does not end it: it is the machine's
// kernel, with the pages that wait to be written.
type Node struct {
	t    *Target
	name string

	mu       sync.Mutex
	buffered []Write
	// fault, if set, is asked before and after each call: an error after it is an answer that is lost.
	fault func(call string, done bool) error
}

var _ shared.Disks = (*Node)(nil)

// Fail lets f answer for the calls that fail. done says that the call has had its effect.
func (n *Node) Fail(f func(call string, done bool) error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.fault = f
}

// call makes a change of the target's state.
func (n *Node) call(ctx context.Context, name string, d shared.Disk, f func(*state) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	n.mu.Lock()
	fault := n.fault
	n.mu.Unlock()
	if fault != nil {
		if err := fault(name, false); err != nil {
			return err
		}
	}
	err := n.t.store.change(func(s *state) ([]Write, error) {
		if s.Identity != d.Identity {
			return nil, fmt.Errorf("%w: the device of volume %s says that it is %s, and the volume's is %s", provision.ErrConflict, d.Volume, s.Identity, d.Identity)
		}
		return nil, f(s)
	})
	if err == nil && fault != nil {
		err = fault(name, true)
	}
	return err
}

// Capabilities implements shared.Disks.
func (n *Node) Capabilities() shared.Capabilities { return n.t.capabilities() }

// Look implements shared.Disks.
func (n *Node) Look(ctx context.Context, d shared.Disk) (v shared.View, err error) {
	err = n.call(ctx, "look", d, func(s *state) (err error) {
		v.Content, err = n.device(s, d)
		v.Disk = s.view(n.name, d.ManyWriters)
		return err
	})
	if err != nil {
		return shared.View{}, err
	}
	switch v.Link {
	case ownership.AttachFailed:
		v.Problem = "the target has no share left, or refused"
	}
	return v, nil
}

// device returns the device of a node that is attached. A session whose device is gone is over: the
// machine was restarted.
func (n *Node) device(s *state, d shared.Disk) (provision.Content, error) {
	switch {
	case s.Sessions[n.name].Link != ownership.Attached:
		return provision.Content{}, nil
	case n.t.devices == nil:
		return provision.Content{Source: "/dev/simdisk/" + path.Base(d.Handle), Identity: d.Identity}, nil
	}
	at, err := n.t.devices.find(n.name)
	if err == nil && at == "" {
		s.leaves(n.name)
		return provision.Content{}, nil
	}
	if err != nil {
		return provision.Content{}, err
	}
	return at.content()
}

// Attach implements shared.Disks. The session is known before there is a device, so that a node with
// a device always has a session.
func (n *Node) Attach(ctx context.Context, d shared.Disk) error {
	if err := n.t.accepts(d); err != nil {
		return err
	}
	if n.t.devices == nil {
		return n.call(ctx, "attach", d, func(s *state) error {
			s.attach(n.name)
			return nil
		})
	}
	if err := n.call(ctx, "attach", d, func(s *state) error {
		_, err := n.device(s, d)
		s.begin(n.name)
		return err
	}); err != nil {
		return err
	}
	return n.call(ctx, "appear", d, func(s *state) error {
		if s.Sessions[n.name].Link != ownership.Attaching {
			return nil
		}
		if s.finish(n.name, true); s.Sessions[n.name].Link != ownership.Attached {
			return nil
		}
		return n.t.devices.add(n.name)
	})
}

// Detach implements shared.Disks.
func (n *Node) Detach(ctx context.Context, d shared.Disk) error {
	release, err := n.t.alone(n.name)
	if err != nil {
		return err
	}
	defer release()
	n.drop()
	return n.call(ctx, "detach", d, func(s *state) error {
		if n.t.devices != nil {
			if err := n.t.devices.remove(n.name); err != nil {
				return err
			}
		}
		s.leaves(n.name)
		return nil
	})
}

// drop forgets the pages that wait to be written.
func (n *Node) drop() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.buffered = nil
}

// Register implements shared.Disks.
func (n *Node) Register(ctx context.Context, d shared.Disk, key ownership.RawKey, use shared.Use) error {
	if use == shared.Idle {
		release, err := n.t.alone(n.name)
		if err != nil {
			return err
		}
		defer release()
		n.drop()
		if n.t.devices != nil {
			if err := n.t.devices.settle(n.name); err != nil {
				return err
			}
		}
	}
	return n.call(ctx, "register", d, func(s *state) error {
		if at := s.Sessions[n.name]; use == shared.Idle && at.Failed {
			at.Failed = false
			s.Sessions[n.name] = at
		}
		return s.register(n.name, key)
	})
}

// Reserve implements shared.Disks.
func (n *Node) Reserve(ctx context.Context, d shared.Disk, expect, key ownership.RawKey) error {
	if err := n.t.accepts(d); err != nil {
		return err
	}
	whole := true
	err := n.call(ctx, "reserve", d, func(s *state) (err error) {
		if !d.ManyWriters {
			return s.reserve(n.name, expect, key)
		}
		whole, err = s.preempt(n.name, expect, key)
		return err
	})
	if err == nil && !whole {
		err = fmt.Errorf("%w: the registrations under key %#x are gone, and the disk is not reserved for all that are registered", provision.ErrConflict, uint64(expect))
	}
	return err
}

// Flush implements shared.Disks.
func (n *Node) Flush(ctx context.Context, d shared.Disk) error {
	release, err := n.t.alone(n.name)
	if err != nil {
		return err
	}
	defer release()
	if err := n.WriteBack(); err != nil {
		return err
	}
	if n.t.devices != nil {
		if err := n.t.devices.settle(n.name); err != nil {
			return err
		}
	}
	return n.call(ctx, "flush", d, func(s *state) error {
		at, err := s.attached(n.name)
		if err == nil && at.Failed {
			err = fmt.Errorf("%w: a write to the disk was refused", provision.ErrUnavailable)
		}
		return err
	})
}

// Device is an open device.
type Device struct {
	n     *Node
	epoch lineage.Epoch
	// Close closes it. The pages that wait to be written stay.
	Close func()
}

// Open opens the device for a writer that believes to be in an epoch.
func (n *Node) Open(epoch lineage.Epoch) (*Device, error) {
	closed, err := n.t.store.open(n.name)
	if err != nil {
		return nil, err
	}
	return &Device{n: n, epoch: epoch, Close: closed}, nil
}

// Write writes and waits for the target's answer.
func (d *Device) Write(data string) error {
	w, err := d.Send(data)
	if err != nil {
		return err
	}
	return d.n.Land(w)
}

// Send returns a command that is on its way: Land lets the target execute it, however late.
func (d *Device) Send(data string) (w Write, err error) {
	err = d.n.t.store.change(func(s *state) ([]Write, error) {
		w = Write{Node: d.n.name, Session: s.Sessions[d.n.name].Number, Epoch: d.epoch, Data: data}
		return nil, nil
	})
	return w, err
}

// Buffer writes into the node's pages. They reach the target when they are written back.
func (d *Device) Buffer(data string) {
	d.n.mu.Lock()
	defer d.n.mu.Unlock()
	d.n.buffered = append(d.n.buffered, Write{Node: d.n.name, Epoch: d.epoch, Data: data})
}

// Land lets the target execute a command.
func (n *Node) Land(w Write) error {
	var refused error
	err := n.t.store.change(func(s *state) ([]Write, error) {
		if refused = s.judge(w); refused == nil {
			return []Write{w}, nil
		}
		if at, ok := s.Sessions[w.Node]; ok {
			at.Failed = true
			s.Sessions[w.Node] = at
		}
		return nil, nil
	})
	if err != nil {
		return err
	}
	return refused
}

// WriteBack writes the node's pages back, as the kernel may at any time, in the session that the
// node has now.
func (n *Node) WriteBack() error {
	n.mu.Lock()
	pages := n.buffered
	n.buffered = nil
	n.mu.Unlock()
	d := Device{n: n}
	for _, page := range pages {
		w, err := d.Send(page.Data)
		if err == nil {
			w.Epoch = page.Epoch
			err = n.Land(w)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
