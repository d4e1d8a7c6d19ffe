package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"berth.dev/berth/lab/internal/guest"
	"berth.dev/berth/lab/internal/network"
)

// Pause stops the node, as an overloaded hypervisor does, or one that moves a machine. With
// frozen its clocks stop, too: after [Node.Resume] it does not know that time has passed.
func (n Node) Pause(ctx context.Context, frozen bool) error {
	return n.change(func(m Machine) error {
		if frozen {
			return m.Freeze(ctx)
		}
		return m.Pause(ctx)
	})
}

// Resume undoes [Node.Pause].
func (n Node) Resume(ctx context.Context) error {
	return n.change(func(m Machine) error { return m.Resume(ctx) })
}

// Cut disconnects the node from parts of the cluster's network; without any, from all of it,
// as a pulled cable does.
func (n Node) Cut(ctx context.Context, parts []network.Part) error {
	if err := validate(parts); err != nil {
		return err
	}
	return n.change(func(Machine) error {
		net, err := n.cluster.network(ctx)
		if err != nil {
			return err
		}
		if len(parts) == 0 {
			return net.Cut(ctx, n.name)
		}
		if err := guest.InstallPackages(ctx, n.cluster.lab.Report, guest.Missing(network.FilterPackages)); err != nil {
			return err
		}
		for _, part := range parts {
			if err := net.Sever(ctx, n.name, part); err != nil {
				return err
			}
		}
		return nil
	})
}

// Heal undoes [Node.Cut] for parts of the network; without any, it undoes every fault of
// the node's network.
func (n Node) Heal(ctx context.Context, parts []network.Part) error {
	if err := validate(parts); err != nil {
		return err
	}
	return n.change(func(m Machine) error {
		net, err := n.cluster.network(ctx)
		if err != nil {
			return err
		}
		if len(parts) > 0 {
			return restore(ctx, net, n.name, parts)
		}
		if !n.offNative(m) {
			err = net.Heal(ctx, n.name)
		}
		return errors.Join(err, restore(ctx, net, n.name, network.Parts), n.shape(ctx, m, network.Link{}))
	})
}

func validate(parts []network.Part) error {
	var errs []error
	for _, p := range parts {
		errs = append(errs, p.Validate())
	}
	return errors.Join(errs...)
}

func restore(ctx context.Context, net *network.Network, node string, parts []network.Part) error {
	var errs []error
	for _, part := range parts {
		errs = append(errs, net.Restore(ctx, node, part))
	}
	return errors.Join(errs...)
}

// Shape delays and loses packets that the node sends. The zero Link ends that.
func (n Node) Shape(ctx context.Context, link network.Link) error {
	if err := link.Validate(); err != nil {
		return err
	}
	return n.change(func(m Machine) error { return n.shape(ctx, m, link) })
}

// shaped is a [network.Link] in force, and the process of the node's machine: another one
// knows nothing of it.
type shaped struct {
	Link network.Link `json:"link"`
	PID  int          `json:"pid"`
}

// shape is recorded before it happens: a fault that is shown and not there is a smaller
// surprise than one that is there and not shown.
func (n Node) shape(ctx context.Context, m Machine, link network.Link) error {
	now := n.link(m)
	if now == link {
		return nil
	}
	record := func(l network.Link) error {
		return n.cluster.state.update(func(s *contents) {
			if s.Links == nil {
				s.Links = map[string]shaped{}
			}
			s.Links[n.name] = shaped{Link: l, PID: m.PID()}
		})
	}
	if link != (network.Link{}) {
		if err := record(link); err != nil {
			return err
		}
	}
	if _, err := m.Output(ctx, link.Command(network.Interface)...); err != nil {
		if strings.Contains(err.Error(), "qdisc kind is unknown") {
			err = fmt.Errorf("the kernel of %s has no netem: use a cluster of guests (lab up without --native)", n.name)
		}
		return errors.Join(err, record(now))
	}
	return record(link)
}

// link returns what the node's interface does to packets.
func (n Node) link(m Machine) network.Link {
	if s, ok := n.cluster.state.link(n.name); ok && m.Power() != guest.Off && s.PID == m.PID() {
		return s.Link
	}
	return network.Link{}
}

// offNative reports whether the node has no cable, because it is native and off.
func (n Node) offNative(m Machine) bool {
	return m.Power() == guest.Off && n.native()
}
