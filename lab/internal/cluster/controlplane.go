package cluster

import (
	"context"
	"slices"

	"berth.dev/berth/lab/internal/build"
	"berth.dev/berth/lab/internal/controlplane"
	"berth.dev/berth/lab/internal/network"
	"berth.dev/berth/lab/internal/pki"
	"berth.dev/berth/lab/internal/progress"
)

// ControlPlane is the API server of a cluster with the processes around it: those of
// [controlplane.Components], and the forwarder.
type ControlPlane struct{ cluster *Cluster }

// config returns the configuration of the control plane in net.
func (p ControlPlane) config(net *network.Network) (controlplane.Config, error) {
	c := p.cluster
	authority, err := pki.Open(c.paths.certificates())
	if err != nil {
		return controlplane.Config{}, err
	}
	programs := c.state.get().Programs
	return controlplane.Config{
		Programs:  programs.Kubernetes,
		Etcd:      programs.Etcd,
		CoreDNS:   programs.CoreDNS,
		Dir:       c.paths.controlPlane(),
		NetNS:     net.Path(),
		Address:   network.Gateway,
		ServiceIP: network.APIService,
		Services:  network.Services,
		DNS:       network.DNSAddress, DNSService: network.DNSService,
		Authority: authority,

		StockTimeouts: c.Settings().StockTimeouts,
	}, nil
}

// configWithEtcdTools adds the programs that backups need.
func (p ControlPlane) configWithEtcdTools(ctx context.Context) (controlplane.Config, error) {
	tools, err := build.Etcd.Get(ctx, p.cluster.lab.Store)
	if err != nil {
		return controlplane.Config{}, err
	}
	net, err := p.cluster.network(ctx)
	if err != nil {
		return controlplane.Config{}, err
	}
	config, err := p.config(net)
	config.EtcdTools = tools
	return config, err
}

// client returns a client of the cluster's administrator.
func (p ControlPlane) client(ctx context.Context) (*controlplane.Client, error) {
	net, err := p.cluster.network(ctx)
	if err != nil {
		return nil, err
	}
	config, err := p.config(net)
	if err != nil {
		return nil, err
	}
	return controlplane.NewClient(config)
}

// start starts the processes that do not run.
func (p ControlPlane) start(ctx context.Context, config controlplane.Config) error {
	err := p.cluster.step("control plane", func(step progress.Step) error {
		return controlplane.Start(ctx, config, p.cluster.state, step)
	})
	if err != nil {
		return err
	}
	return p.startForwarder(ctx, config)
}

// Backup saves the state of the API server, while the cluster runs.
func (p ControlPlane) Backup(ctx context.Context, file string) error {
	if err := needRoot(); err != nil {
		return err
	}
	config, err := p.configWithEtcdTools(ctx)
	if err != nil {
		return err
	}
	return p.cluster.step("API server: backup", func(progress.Step) error {
		return controlplane.Backup(ctx, config, p.cluster.state, file)
	})
}

// Restore sets the API server back to a state that [ControlPlane.Backup] saved. Nodes, their
// disks and their processes stay as they are.
func (p ControlPlane) Restore(ctx context.Context, r controlplane.Restoration) error {
	if err := needRoot(); err != nil {
		return err
	}
	return p.cluster.change(func() error {
		config, err := p.configWithEtcdTools(ctx)
		if err != nil {
			return err
		}
		return p.cluster.step("API server: restore", func(step progress.Step) error {
			return controlplane.Restore(ctx, config, p.cluster.state, r, step)
		})
	})
}

// components are the names of the processes that the cluster should have.
func (p ControlPlane) components() []string {
	all := append(slices.Clone(controlplane.Components), forwarder)
	if p.cluster.state.get().Programs.CoreDNS == "" {
		all = slices.DeleteFunc(all, func(name string) bool { return name == controlplane.DNS })
	}
	return all
}

// status returns the state of each process that the cluster should have.
func (p ControlPlane) status() []ProcessStatus {
	var all []ProcessStatus
	for _, name := range p.components() {
		rec, _ := p.cluster.state.Process(name)
		s := ProcessStatus{Name: name, Running: rec.Alive(), Log: rec.Log}
		if s.Running {
			s.PID = rec.PID
		}
		all = append(all, s)
	}
	return all
}
