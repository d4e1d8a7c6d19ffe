package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"berth.dev/berth/internal/agent"
	"berth.dev/berth/internal/agent/journal"
	"berth.dev/berth/internal/agent/metrics"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/guard/word"
	"berth.dev/berth/internal/poold"
	"berth.dev/berth/internal/publish/staging"
)

// embedded as the value of --poold runs it in the agent's own process.
const embedded = "embedded"

type agentFlags struct {
	doorFlags
	node, kubeletDir, poold string
	driver, guardSocket     string
	serves                  driver.Driver // as driver names it
	simulatedDisks          string
	copies                  bool
	copiesRate              string
	udev                    bool
	orphanRetention         time.Duration
	peers                   peerFlags
}

// minOrphanRetention gives people the time to see an orphan before it is deleted.
const minOrphanRetention = 24 * time.Hour

func newAgentCommand() *cobra.Command { return agentCommand(&agentFlags{}) }

func agentCommand(f *agentFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Run the agent of a node",
		Long: "Run the agent of a node: CSI's node service, the node's replicas, and the report of its pools. " +
			"With --driver=disk it serves shared disks instead, and has no pools.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context()) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.node, "node-name", os.Getenv("NODE_NAME"), "name of the Node that this process runs on; by default $NODE_NAME")
	f.add(flags, ":9808")
	flags.StringVar(&f.kubeletDir, "kubelet-dir", defaultKubeletDir, "the kubelet's directory")
	flags.StringVar(&f.poold, "poold", embedded, "the pool daemon: embedded, or unix:///path of its socket")
	flags.StringVar(&f.csiSocket, "csi-socket", "", "unix socket on which the kubelet connects; by default plugins/DRIVER/csi.sock in the kubelet's directory")
	flags.DurationVar(&f.orphanRetention, "orphan-retention", 0, "delete data that has no object after this long, at least 24h; 0 keeps it for ever")
	flags.StringVar(&f.guardSocket, "guard-socket", "", "unix socket of the node's guard; empty where none runs. Of a node's agents one has it: that of --driver=disk where there is one")
	flags.StringVar(&f.driver, "driver", "local", "driver to serve: local, or disk for shared disks, which needs --guard-socket")
	flags.StringVar(&f.simulatedDisks, "simulated-disks", "", "for tests and demonstrations only: directory of simulated shared disks. They do not refuse the writes of a node that lost its reservation")
	flags.BoolVar(&f.copies, "copies", false, "serve volumes with copies on several nodes, too: with --driver=local, --guard-socket and --peer-address. "+
		"No controller makes or oversees such volumes yet")
	flags.StringVar(&f.copiesRate, "copies-rate", noRate, "bytes a second of such volumes' data that may leave this node, such as 50Mi; 0 is no limit")
	f.peers.add(flags)
	addUdevFlag(cmd, &f.udev)
	return cmd
}

// complete checks the flags and fills in those that follow from others.
func (f *agentFlags) complete() error {
	if f.node == "" {
		return errors.New("--node-name is missing: give it, or set NODE_NAME to spec.nodeName")
	}
	if !filepath.IsAbs(f.kubeletDir) {
		return fmt.Errorf("--kubelet-dir %q is not an absolute path", f.kubeletDir)
	}
	if socket, ok := strings.CutPrefix(f.poold, "unix://"); f.poold != embedded && (!ok || !filepath.IsAbs(socket)) {
		return fmt.Errorf("--poold %q is neither %s nor unix:// with an absolute path", f.poold, embedded)
	}
	if f.orphanRetention != 0 && f.orphanRetention < minOrphanRetention {
		return fmt.Errorf("--orphan-retention %s is neither 0 nor at least %s", f.orphanRetention, minOrphanRetention)
	}
	d, err := driver.Named(f.driver)
	if err != nil {
		return fmt.Errorf("--driver: %w", err)
	}
	if err := f.fits(d); err != nil {
		return err
	}
	if f.serves = d; f.csiSocket == "" {
		f.csiSocket = filepath.Join(f.kubeletDir, "plugins", d.Name, "csi.sock")
	}
	return f.peers.complete()
}

// fits checks the flags that depend on the driver.
func (f *agentFlags) fits(d driver.Driver) error {
	switch {
	case d.Epochs() && f.guardSocket == "":
		return fmt.Errorf("--driver %s needs --guard-socket: without the guard of its node no volume can be taken (chart value guard.enabled)", f.driver)
	case !f.copies && f.copiesRate != noRate:
		return errors.New("--copies-rate is for an agent with --copies: no other sends copies")
	case f.copies && !d.Pools:
		return errors.New("--copies is for --driver local, whose volumes are in pools")
	case f.copies && (f.guardSocket == "" || f.peers.address == ""):
		return errors.New("--copies needs --guard-socket and --peer-address: a copy is taken over only from a node that is guarded, and is fetched from others (chart value guard.enabled)")
	case f.simulatedDisks != "" && !d.Epochs():
		return errors.New("--simulated-disks is for --driver disk")
	case f.simulatedDisks != "" && !filepath.IsAbs(f.simulatedDisks):
		return fmt.Errorf("--simulated-disks %q is not an absolute path", f.simulatedDisks)
	}
	return nil
}

func (f *agentFlags) run(ctx context.Context) (err error) {
	if err := f.complete(); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(f.csiSocket), 0o750); err != nil {
		return fmt.Errorf("making directory of CSI socket: %w", err)
	}
	d, err := f.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()

	asks, err := f.peers.openAgent(ctx, d.cluster, f.node, f.namespace)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, asks.close()) }()
	if f.serves.Epochs() {
		return f.runDisk(ctx, d, asks)
	}
	if kept := (journal.Journal{Files: agent.JournalDir(f.kubeletDir, f.serves.Name)}); f.guardSocket != "" && !f.copies && speaksForNone(kept) {
		// No volume of this driver has epochs: each has one copy, on one node.
		go word.Client{Socket: f.guardSocket}.Vouch(ctx, clock.RealClock{}, ctrl.Log.WithName("guard"))
	}
	return f.withDisks(ctx, func(ctx context.Context, n poold.Node, registry *prometheus.Registry) error {
		o := f.options(d, registry)
		o.Disks, o.OrphanRetention = n, f.orphanRetention
		if f.copies {
			return f.runReplicated(ctx, o, asks)
		}
		return asks.beside(ctx, agent.New(o).Run)
	})
}

// options are those of the agents of all drivers.
func (f *agentFlags) options(d *doors, registry *prometheus.Registry) agent.Options {
	return agent.Options{
		Driver: f.serves, Node: f.node, Namespace: f.namespace, KubeletDir: f.kubeletDir,
		Mounts: staging.KernelMounts, ShutDowns: (&staging.ShutDowns{}).Below,
		Config: d.cluster, CSI: d.csi, HTTP: d.http, Registry: registry,
		RegistrationSocket: filepath.Join(f.kubeletDir, "plugins_registry", f.serves.Name+"-reg.sock"),
		Version:            version, Log: ctrl.Log, Clock: clock.RealClock{},
	}
}

// withDisks runs use on the node's disks, in this process or behind
// poold's socket.
func (f *agentFlags) withDisks(ctx context.Context, use func(context.Context, poold.Node, *prometheus.Registry) error) error {
	registry := prometheus.NewRegistry()
	if socket, remote := strings.CutPrefix(f.poold, "unix://"); remote {
		client, err := poold.Dial(ctx, socket)
		if err != nil {
			return err
		}
		return errors.Join(use(ctx, client, registry), client.Close())
	}
	d, err := newDisks(f.udev, metrics.NewCommands(registry))
	if err != nil {
		return err
	}
	work, ctx := errgroup.WithContext(ctx)
	work.Go(func() error { return d.run(ctx) })
	work.Go(func() error { return use(ctx, d.node(), registry) })
	return work.Wait()
}
