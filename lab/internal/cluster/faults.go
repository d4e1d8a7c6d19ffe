package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"berth.dev/berth/lab/internal/guest"
	"berth.dev/berth/lab/internal/network"
)

// Pause stops a node, as an overloaded hypervisor does, or one that moves a machine. With
// frozen its clocks stop, too: after [Cluster.Resume] it does not know that time has passed.
func (c *Cluster) Pause(ctx context.Context, node string, frozen bool) error {
	return c.withMachine(node, func(m Machine) error {
		if frozen {
			return m.Freeze(ctx)
		}
		return m.Pause(ctx)
	})
}

// Resume undoes [Cluster.Pause].
func (c *Cluster) Resume(ctx context.Context, node string) error {
	return c.withMachine(node, func(m Machine) error { return m.Resume(ctx) })
}

// Cut disconnects a node from parts of the cluster's network; without any, from all of it,
// as a pulled cable does.
func (c *Cluster) Cut(ctx context.Context, node string, parts []network.Part) error {
	if err := validate(parts); err != nil {
		return err
	}
	return c.withMachine(node, func(Machine) error {
		net, err := c.network(ctx)
		if err != nil {
			return err
		}
		if len(parts) == 0 {
			return net.Cut(ctx, node)
		}
		if err := guest.InstallPackages(ctx, c.lab.Report, guest.Missing(network.FilterPackages)); err != nil {
			return err
		}
		for _, part := range parts {
			if err := net.Sever(ctx, node, part); err != nil {
				return err
			}
		}
		return nil
	})
}

// Heal undoes [Cluster.Cut] for parts of the network; without any, it undoes every fault of
// the node's network.
func (c *Cluster) Heal(ctx context.Context, node string, parts []network.Part) error {
	if err := validate(parts); err != nil {
		return err
	}
	return c.withMachine(node, func(m Machine) error {
		net, err := c.network(ctx)
		if err != nil {
			return err
		}
		if len(parts) > 0 {
			return restore(ctx, net, node, parts)
		}
		if !c.offNative(node, m) {
			err = net.Heal(ctx, node)
		}
		return errors.Join(err, restore(ctx, net, node, network.Parts), c.shape(ctx, node, m, network.Link{}))
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

// Shape delays and loses packets that a node sends. The zero Link ends that.
func (c *Cluster) Shape(ctx context.Context, node string, link network.Link) error {
	if err := link.Validate(); err != nil {
		return err
	}
	return c.withMachine(node, func(m Machine) error { return c.shape(ctx, node, m, link) })
}

// shaped is a [network.Link] in force, and the process of the node's machine: another one
// knows nothing of it.
type shaped struct {
	Link network.Link `json:"link"`
	PID  int          `json:"pid"`
}

// shape is recorded before it happens: a fault that is shown and not there is a smaller
// surprise than one that is there and not shown.
func (c *Cluster) shape(ctx context.Context, node string, m Machine, link network.Link) error {
	now := c.link(node, m)
	if now == link {
		return nil
	}
	record := func(l network.Link) error {
		return c.state.update(func(s *contents) {
			if s.Links == nil {
				s.Links = map[string]shaped{}
			}
			s.Links[node] = shaped{Link: l, PID: m.PID()}
		})
	}
	if link != (network.Link{}) {
		if err := record(link); err != nil {
			return err
		}
	}
	if _, err := m.Output(ctx, link.Command(network.Interface)...); err != nil {
		if strings.Contains(err.Error(), "qdisc kind is unknown") {
			err = fmt.Errorf("the kernel of %s has no netem: use a cluster of guests (lab up without --native)", node)
		}
		return errors.Join(err, record(now))
	}
	return record(link)
}

// link returns what the node's interface does to packets.
func (c *Cluster) link(node string, m Machine) network.Link {
	if s, ok := c.state.link(node); ok && m.Power() != guest.Off && s.PID == m.PID() {
		return s.Link
	}
	return network.Link{}
}

// offNative reports whether a node has no cable, because it is native and off.
func (c *Cluster) offNative(node string, m Machine) bool {
	return m.Power() == guest.Off && c.Settings().native(node)
}
