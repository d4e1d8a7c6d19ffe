package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"berth.dev/berth/lab/internal/process"
)

// ErrNotExist says that the lab has no network.
var ErrNotExist = errors.New("the lab's network does not exist")

// Network is the network of one lab.
type Network struct {
	name string
	path string
}

var validName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$`)

// Create makes the network of the named lab, or completes it.
func Create(ctx context.Context, name string) (*Network, error) {
	n, err := at(name)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := ensureNamespace(n.path); err != nil {
		return nil, fmt.Errorf("creating network namespace %s: %w", filepath.Base(n.path), err)
	}
	if err := process.InNetNS(n.path, ensureBridge); err != nil {
		return nil, fmt.Errorf("setting up network of lab %s: %w", name, err)
	}
	return n, nil
}

// Open returns the network of the named lab, or [ErrNotExist].
func Open(name string) (*Network, error) {
	n, err := at(name)
	if err != nil {
		return nil, err
	}
	exists, err := isNamespace(n.path)
	if err != nil {
		return nil, err
	}
	if !exists {
		return nil, fmt.Errorf("lab %s: %w", name, ErrNotExist)
	}
	return n, nil
}

func at(name string) (*Network, error) {
	if !validName.MatchString(name) {
		return nil, fmt.Errorf("lab name %q: must be up to 40 lower-case letters, digits and dashes", name)
	}
	return &Network{name: name, path: filepath.Join(namespaceDir, "berth-lab-"+name)}, nil
}

// Path returns the file that stands for the namespace, also for use with
// `ip netns exec`.
func (n *Network) Path() string { return n.path }

// Destroy removes the network with everything in it. Processes inside keep
// the kernel's namespace alive: stop them first. A network that does not exist
// is no error.
func (n *Network) Destroy(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := removeNamespace(n.path); err != nil {
		return fmt.Errorf("removing network namespace %s: %w", filepath.Base(n.path), err)
	}
	return nil
}

// ensureBridge runs inside the namespace.
func ensureBridge() error {
	for setting, value := range map[string]string{
		"net/ipv4/ip_forward":                  "1",
		"net/ipv4/conf/all/send_redirects":     "0", // packets are meant to pass the router
		"net/ipv4/conf/default/send_redirects": "0",
		"net/ipv6/conf/default/disable_ipv6":   "1",
	} {
		if err := sysctl(setting, value); err != nil {
			return err
		}
	}
	if err := linkUp("lo"); err != nil {
		return err
	}
	mac, err := net.ParseMAC(bridgeMAC)
	if err != nil {
		return err
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.HardwareAddr = bridge, mac
	if err := netlink.LinkAdd(&netlink.Bridge{LinkAttrs: attrs}); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("adding bridge: %w", err)
	}
	link, err := netlink.LinkByName(bridge)
	if err != nil {
		return fmt.Errorf("finding bridge: %w", err)
	}
	for _, address := range []netip.Prefix{
		netip.PrefixFrom(Gateway, Nodes.Bits()), netip.PrefixFrom(DNSAddress, 32),
		netip.PrefixFrom(APIService, 32), netip.PrefixFrom(DNSService, 32),
	} {
		addr, err := netlink.ParseAddr(address.String())
		if err != nil {
			return err
		}
		if err := netlink.AddrReplace(link, addr); err != nil {
			return fmt.Errorf("adding address %s: %w", address, err)
		}
	}
	return linkUp(bridge)
}

// HoldSAN gives the bridge the address of the SAN, for a target that is a process of this
// machine. With hold false it takes the address away. Both are idempotent.
func (n *Network) HoldSAN(ctx context.Context, hold bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	err := process.InNetNS(n.path, func() error {
		link, err := netlink.LinkByName(bridge)
		if err != nil {
			return fmt.Errorf("finding bridge: %w", err)
		}
		addr, err := netlink.ParseAddr(SANAddress.String() + "/32")
		if err != nil {
			return err
		}
		if hold {
			return netlink.AddrReplace(link, addr)
		}
		if err := netlink.AddrDel(link, addr); err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
			return err
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("address %s of the SAN: %w", SANAddress, err)
	}
	return nil
}

func linkUp(name string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("finding interface %s: %w", name, err)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("raising interface %s: %w", name, err)
	}
	return nil
}

// sysctl sets a kernel parameter of the calling thread's namespace. A kernel
// without IPv6 has no parameters for it.
func sysctl(name, value string) error {
	err := os.WriteFile(filepath.Join("/proc/sys", name), []byte(value), 0o644)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("setting kernel parameter: %w", err)
	}
	return nil
}
