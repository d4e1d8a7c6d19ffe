package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"berth.dev/berth/lab/internal/process"
)

// Interface is the name of a node's interface, in the node.
const Interface = "lan0"

// Cable connects the network namespace of a process, which is a node's, to the
// bridge, as [Network.Tap] connects a guest: [Network.Cut] works for both. The
// cable goes with the namespace.
func (n *Network) Cable(ctx context.Context, node string, pid int, address netip.Prefix, mac string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	err := process.InNetNS(n.path, func() error { return plug(tapName(node), pid) })
	if err == nil {
		err = process.InNetNS(fmt.Sprintf("/proc/%d/ns/net", pid), func() error { return configure(address, mac) })
	}
	if err != nil {
		return fmt.Errorf("connecting node %s: %w", node, err)
	}
	return nil
}

// Unplug removes the cable of a node that is off. The kernel does so, too, but some
// time later. A cable that does not exist is no error.
func (n *Network) Unplug(ctx context.Context, node string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return process.InNetNS(n.path, func() error { return unplug(tapName(node)) })
}

func unplug(name string) error {
	link, err := netlink.LinkByName(name)
	if _, missing := errors.AsType[netlink.LinkNotFoundError](err); missing {
		return nil
	}
	if err == nil {
		err = netlink.LinkDel(link)
	}
	if errors.Is(err, unix.ENODEV) {
		return nil // the kernel removed it first
	}
	if err != nil {
		return fmt.Errorf("removing cable %s: %w", name, err)
	}
	return nil
}

// plug runs inside the lab's namespace.
func plug(name string, pid int) error {
	if err := unplug(name); err != nil {
		return err
	}
	master, err := netlink.LinkByName(bridge)
	if err != nil {
		return fmt.Errorf("finding bridge: %w", err)
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MasterIndex = name, master.Attrs().Index
	veth := &netlink.Veth{LinkAttrs: attrs, PeerName: Interface, PeerNamespace: netlink.NsPid(pid)}
	if err := netlink.LinkAdd(veth); err != nil {
		return fmt.Errorf("adding cable %s: %w", name, err)
	}
	return linkUp(name)
}

// configure runs inside the node's namespace.
func configure(address netip.Prefix, mac string) error {
	for setting, value := range map[string]string{
		"net/ipv4/ip_forward":                "1",
		"net/ipv6/conf/default/disable_ipv6": "1",
	} {
		if err := sysctl(setting, value); err != nil {
			return err
		}
	}
	link, err := netlink.LinkByName(Interface)
	if err != nil {
		return fmt.Errorf("finding interface %s: %w", Interface, err)
	}
	if err := setMAC(link, mac); err != nil {
		return err
	}
	addr, err := netlink.ParseAddr(address.String())
	if err != nil {
		return err
	}
	if err := netlink.AddrReplace(link, addr); err != nil {
		return fmt.Errorf("adding address %s: %w", address, err)
	}
	for _, name := range []string{"lo", Interface} {
		if err := linkUp(name); err != nil {
			return err
		}
	}
	if err := netlink.RouteReplace(&netlink.Route{Gw: Gateway.AsSlice()}); err != nil {
		return fmt.Errorf("adding default route: %w", err)
	}
	return nil
}

func setMAC(link netlink.Link, mac string) error {
	address, err := net.ParseMAC(mac)
	if err == nil {
		err = netlink.LinkSetHardwareAddr(link, address)
	}
	if err != nil {
		return fmt.Errorf("setting hardware address %s: %w", mac, err)
	}
	return nil
}
