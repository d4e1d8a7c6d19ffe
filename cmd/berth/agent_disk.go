package main

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"berth.dev/berth/internal/agent"
	"berth.dev/berth/internal/agent/attached"
	"berth.dev/berth/internal/agent/metrics"
	"berth.dev/berth/internal/agent/released"
	"berth.dev/berth/internal/guard/holders"
	"berth.dev/berth/internal/guard/keep"
	"berth.dev/berth/internal/guard/word"
	"berth.dev/berth/internal/mount/linux"
	"berth.dev/berth/internal/provision/iscsi"
	"berth.dev/berth/internal/provision/iscsi/kernel"
	"berth.dev/berth/internal/provision/shared"
	"berth.dev/berth/internal/provision/shared/ordered"
	"berth.dev/berth/internal/provision/shared/simcloud"
	"berth.dev/berth/internal/provision/shared/simdisk"
	"berth.dev/berth/internal/run"
)

// runDisk runs the agent of shared disks.
func (f *agentFlags) runDisk(ctx context.Context, d *doors, asks *agentPeers) error {
	registry := prometheus.NewRegistry()
	runner := run.Exec{Observer: metrics.NewCommands(registry)}
	mounter, err := linux.New(linux.Config{Runner: runner})
	if err != nil {
		return fmt.Errorf("setting up mounts: %w", err)
	}
	boot, err := keep.Boot()
	if err != nil {
		return err
	}
	o := f.options(d, registry)
	if asks != nil {
		o.Peers = asks.client
	}
	units := iscsi.New(iscsi.Config{Runner: run.Host{Runner: runner}, Kernel: kernel.Kernel{}, Used: holders.Used})
	defer units.Wait()
	a, err := agent.NewDisk(ctx, o, agent.SharedDisks{
		Boot: boot, Journal: agent.JournalDir(f.kubeletDir, o.Driver.Name), Disks: f.provisioners(units),
		Guard: word.Client{Socket: f.guardSocket}, Machine: attached.Kernel{}, Mounter: mounter, Mkfs: mounter.MkfsAs,
		Holding: attached.Holding, Cover: linux.Cover, Eraser: released.Kernel{},
	})
	if err != nil {
		return err
	}
	if asks != nil {
		asks.server.Copies = a.Copies()
	}
	return asks.beside(ctx, a.Run)
}

// provisioners are those of shared disks, by the scheme of the handles that they serve.
func (f *agentFlags) provisioners(units shared.Disks) func(book ordered.Book) shared.Disks {
	return func(book ordered.Book) shared.Disks {
		by := map[string]shared.Disks{"iscsi": units}
		if f.simulatedDisks != "" {
			ctrl.Log.Info("simulated shared disks are served: they are for tests and demonstrations, and protect no data", "directory", f.simulatedDisks)
			by[simdisk.Scheme] = simdisk.In(f.simulatedDisks, f.node)
			by[simcloud.Scheme] = ordered.New(simcloud.In(f.simulatedDisks, f.node), book, clock.RealClock{})
		}
		return shared.Schemes(by)
	}
}
