package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"berth.dev/berth/lab/internal/artefact"
	"berth.dev/berth/lab/internal/network"
	"berth.dev/berth/lab/internal/progress"
)

// Lab says where clusters live and how they are made.
type Lab struct {
	Root   string // state directory, [DefaultRoot] for people
	Store  *artefact.Store
	Report progress.Reporter
	Self   string // path of the lab program, which is also the forwarder
}

// Cluster is one cluster that is up, or half up. It keeps what its parts share: the state file, the
// lock and the network.
type Cluster struct {
	lab   Lab
	paths paths
	state *state
}

// ErrNeedRoot says that the machine's network and processes may not be changed.
var ErrNeedRoot = errors.New("the lab makes network namespaces and machines and must be run as root")

func needRoot() error {
	if os.Geteuid() != 0 {
		return ErrNeedRoot
	}
	return nil
}

// Open returns the named cluster, or [ErrNotUp].
func (l Lab) Open(name string) (*Cluster, error) {
	p, err := newPaths(l.Root, name)
	if err != nil {
		return nil, err
	}
	st, err := loadState(p.state(), name)
	if err != nil {
		return nil, err
	}
	return &Cluster{lab: l, paths: p, state: st}, nil
}

// Settings returns the settings with which the cluster was made.
func (c *Cluster) Settings() Settings { return c.state.get().Settings }

// Begun reports whether anything of the cluster was started. Until then its
// settings may still change: the first try may have failed because of them.
func (c *Cluster) Begun() bool {
	_, err := os.Stat(filepath.Dir(c.paths.node("any")))
	return err == nil || len(c.state.processes()) > 0
}

// Kubeconfig returns the path of a kubeconfig that works on this machine.
func (c *Cluster) Kubeconfig() string { return c.paths.kubeconfig() }

// ControlPlane returns the cluster's control plane.
func (c *Cluster) ControlPlane() ControlPlane { return ControlPlane{cluster: c} }

// Node returns the node of a name, in the cluster or not. It does not look: until a command holds
// the lock, another one may change the settings. [Node.Machine] looks.
func (c *Cluster) Node(name string) Node { return Node{cluster: c, name: name} }

// Nodes returns all nodes.
func (c *Cluster) Nodes() []Node {
	var all []Node
	for _, name := range c.Settings().NodeNames() {
		all = append(all, c.Node(name))
	}
	return all
}

// SAN returns the cluster's SAN, made or not.
func (c *Cluster) SAN() SAN { return SAN{cluster: c} }

// SharedDisks returns the disks that nodes share.
func (c *Cluster) SharedDisks() SharedDisks { return SharedDisks{cluster: c} }

// change runs f while no other command changes the cluster.
func (c *Cluster) change(f func() error) error {
	lock, err := takeLock(c.paths.lock(), c.paths.name)
	if err != nil {
		return err
	}
	defer lock.release()
	// Another command may have changed it since Open.
	if c.state, err = loadState(c.paths.state(), c.paths.name); err != nil {
		return err
	}
	return f()
}

// step runs f as a reported step.
func (c *Cluster) step(name string, f func(progress.Step) error) error {
	s := c.lab.Report.Step(name)
	err := f(s)
	s.Done(err)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// network opens the cluster's network.
func (c *Cluster) network(ctx context.Context) (*network.Network, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return network.Open(c.paths.network())
}
