package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"berth.dev/berth/lab/internal/catalog"
	"berth.dev/berth/lab/internal/controlplane"
	"berth.dev/berth/lab/internal/guest"
	"berth.dev/berth/lab/internal/network"
	"berth.dev/berth/lab/internal/node"
	"berth.dev/berth/lab/internal/pki"
	"berth.dev/berth/lab/internal/progress"
)

// processors of a node. With only one, a busy kubelet would starve udev.
const processors = 2

// startNode makes a node's machine if there is none and powers it on. A
// machine that is paused stays so.
func (c *Cluster) startNode(ctx context.Context, m materials, net *network.Network, config controlplane.Config, index int) error {
	name := c.nodeName(index)
	dir := c.paths.node(name)
	tap, err := net.Tap(ctx, name)
	if err != nil {
		return err
	}
	machine, err := guest.Open(dir)
	if err == nil && machine.Power() != guest.Off {
		return nil
	}
	return c.step(name+": booting", func(progress.Step) error {
		if errors.Is(err, guest.ErrNotExist) {
			seed, seedErr := c.seed(ctx, net, config, index)
			if seedErr != nil {
				return seedErr
			}
			s := c.state.get().Settings
			machine, err = guest.Create(ctx, dir, guest.Spec{
				Name: name, Image: m.image, CPUs: processors, Memory: s.Memory, Tools: m.tools, Images: m.images,
				Disks: guest.NewDisks(s.Disks, s.DiskSize), NetNS: net.Path(), Tap: tap, Seed: seed, Resets: true,
			})
		}
		if err != nil {
			return err
		}
		if err := machine.PowerOn(ctx); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeoutCause(ctx, bootLimit, fmt.Errorf("not booted after %v", bootLimit))
		defer cancel()
		return machine.WaitReady(ctx)
	})
}

const (
	bootLimit  = 2 * time.Minute
	readyLimit = 4 * time.Minute
)

func (c *Cluster) seed(ctx context.Context, net *network.Network, config controlplane.Config, index int) (guest.Seed, error) {
	settings, err := c.nodeConfig(ctx, net, config, index)
	if err != nil {
		return guest.Seed{}, err
	}
	return node.Seed(settings)
}

// nodeConfig makes the configuration of one node: its addresses and certificates.
func (c *Cluster) nodeConfig(ctx context.Context, net *network.Network, config controlplane.Config, index int) (node.Config, error) {
	name := c.nodeName(index)
	address, err1 := network.NodeAddress(index)
	pods, err2 := network.PodNetwork(index)
	mac, err3 := network.NodeMAC(index)
	if err := errors.Join(err1, err2, err3); err != nil {
		return node.Config{}, err
	}
	if err := net.Route(ctx, pods, address); err != nil {
		return node.Config{}, err
	}
	user := pki.Subject{Name: "system:node:" + name, Groups: []string{"system:nodes"}}
	kubeconfig, err := config.Authority.Kubeconfig("kubelet-"+name, config.Server(), user)
	if err != nil {
		return node.Config{}, err
	}
	serving := user
	serving.IPs, serving.DNS = []netip.Addr{address}, []string{name}
	pair, err := config.Authority.Issue("kubelet-serving-"+name, serving)
	if err != nil {
		return node.Config{}, err
	}
	proxy, err := config.Authority.Kubeconfig("kube-proxy", config.Server(), pki.Subject{Name: "system:kube-proxy"})
	if err != nil {
		return node.Config{}, err
	}
	return node.Config{
		Name:        name,
		Control:     name == controlNode,
		Address:     netip.PrefixFrom(address, network.Nodes.Bits()),
		MAC:         mac,
		Gateway:     network.Gateway,
		Pods:        pods,
		ClusterPods: network.Pods,
		ClusterDNS:  network.DNSService,
		Domain:      controlplane.Domain,
		PauseImage:  catalog.Pause,
		CA:          config.Authority.CertPEM(),
		Kubeconfig:  kubeconfig,
		Proxy:       proxy,
		ServingCert: pair.Cert,
		ServingKey:  pair.Key,

		StockTimeouts: c.Settings().StockTimeouts,
	}, nil
}

// awaitNodes waits until every node that can become Ready is Ready.
func (c *Cluster) awaitNodes(ctx context.Context, config controlplane.Config) error {
	if len(c.Nodes()) == 0 {
		return nil
	}
	return c.step("nodes Ready", func(step progress.Step) error {
		client, err := controlplane.NewClient(config)
		if err != nil {
			return err
		}
		defer client.Close()
		limited, cancel := context.WithTimeoutCause(ctx, readyLimit, fmt.Errorf("not Ready after %v", readyLimit))
		defer cancel()
		ticker := time.NewTicker(200 * time.Millisecond)
		defer ticker.Stop()
		waiting := c.Nodes()
		for {
			if now := c.notReady(limited, client); limited.Err() == nil { // else it could not ask
				waiting = now
			}
			if len(waiting) == 0 {
				return nil
			}
			step.Note("waiting for %s", strings.Join(waiting, ", "))
			select {
			case <-limited.Done():
				return c.explainNotReady(context.Cause(limited), waiting)
			case <-ticker.C:
			}
		}
	})
}

// notReady returns the nodes that are not Ready. It leaves out the paused and
// disconnected nodes: a test keeps those from being Ready.
func (c *Cluster) notReady(ctx context.Context, client *controlplane.Client) []string {
	ready, _ := nodesReady(ctx, client) // no answer: nothing is Ready
	var waiting []string
	for _, name := range c.Nodes() {
		s, err := c.nodeStatus(ctx, name)
		if err == nil && (s.Power == string(guest.Paused) || s.Cut || slices.Contains(s.Lost, network.API)) {
			continue
		}
		if ready[name] != "True" {
			waiting = append(waiting, name)
		}
	}
	return waiting
}

func (c *Cluster) explainNotReady(cause error, waiting []string) error {
	err := fmt.Errorf("%s: %w", strings.Join(waiting, ", "), cause)
	if m, openErr := c.open(waiting[0]); openErr == nil {
		logs := m.Logs()
		return fmt.Errorf("%w: read the logs %s and %s", err, logs[node.Kubelet], cmp.Or(logs["console"], logs["init"]))
	}
	return err
}
