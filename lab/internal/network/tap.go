package network

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"berth.dev/berth/lab/internal/process"
)

// Tap makes the tap of a node, attaches it to the bridge and returns its name.
// A tap that exists stays as it is, cut or not.
func (n *Network) Tap(ctx context.Context, node string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	name := tapName(node)
	if err := process.InNetNS(n.path, func() error { return ensureTap(name) }); err != nil {
		return "", fmt.Errorf("connecting node %s: %w", node, err)
	}
	return name, nil
}

// ensureTap runs inside the namespace. It attaches the tap to the bridge last: an
// attached tap is complete, and at most cut.
func ensureTap(name string) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	// A persistent device outlives the QEMU process, so that a pulled cable
	// stays pulled while the machine is off.
	tap := &netlink.Tuntap{LinkAttrs: attrs, Mode: netlink.TUNTAP_MODE_TAP, Flags: netlink.TUNTAP_NO_PI | netlink.TUNTAP_VNET_HDR}
	link, err := netlink.LinkByName(name)
	if _, missing := errors.AsType[netlink.LinkNotFoundError](err); missing {
		if err = netlink.LinkAdd(tap); err != nil {
			return fmt.Errorf("adding tap %s: %w", name, err)
		}
		link, err = netlink.LinkByName(name)
	}
	if err != nil {
		return fmt.Errorf("finding tap %s: %w", name, err)
	}
	if link.Attrs().MasterIndex != 0 {
		return nil
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("raising tap %s: %w", name, err)
	}
	master, err := netlink.LinkByName(bridge)
	if err != nil {
		return fmt.Errorf("finding bridge: %w", err)
	}
	if err := netlink.LinkSetMaster(link, master); err != nil {
		return fmt.Errorf("attaching tap %s to bridge: %w", name, err)
	}
	return nil
}

// Cut disconnects a node from all others, as a pulled cable does. Packets are
// lost silently; connections stay as they are on both ends.
func (n *Network) Cut(ctx context.Context, node string) error {
	return n.onTap(ctx, node, netlink.LinkSetDown)
}

// Heal undoes [Network.Cut].
func (n *Network) Heal(ctx context.Context, node string) error {
	return n.onTap(ctx, node, netlink.LinkSetUp)
}

// IsCut reports whether the node is cut off.
func (n *Network) IsCut(ctx context.Context, node string) (bool, error) {
	var isCut bool
	err := n.onTap(ctx, node, func(tap netlink.Link) error {
		isCut = tap.Attrs().RawFlags&unix.IFF_UP == 0
		return nil
	})
	return isCut, err
}

func (n *Network) onTap(ctx context.Context, node string, f func(netlink.Link) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	err := process.InNetNS(n.path, func() error {
		tap, err := netlink.LinkByName(tapName(node))
		if err != nil {
			return fmt.Errorf("finding its tap: %w", err)
		}
		return f(tap)
	})
	if err != nil {
		return fmt.Errorf("network of node %s: %w", node, err)
	}
	return nil
}

// Route sends packets for a pod network to its node.
func (n *Network) Route(ctx context.Context, to netip.Prefix, via netip.Addr) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	dst, err := netlink.ParseIPNet(to.String())
	if err != nil {
		return fmt.Errorf("adding route: %w", err)
	}
	err = process.InNetNS(n.path, func() error {
		return netlink.RouteReplace(&netlink.Route{Dst: dst, Gw: via.AsSlice()})
	})
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("adding route to %s: %w", to, err)
	}
	return nil
}
