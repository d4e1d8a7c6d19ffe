package main

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"

	"berth.dev/berth/internal/poold"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/replicate/cert"
	"berth.dev/berth/internal/replicate/cert/issue"
	"berth.dev/berth/internal/replicate/limit"
	"berth.dev/berth/internal/replicate/stream"
	"berth.dev/berth/internal/replicate/trial"
	"berth.dev/berth/internal/replicate/wire"
)

func newReplicateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "replicate",
		Short: "Try the replication between two nodes by hand, without Kubernetes",
		Args:  cobra.NoArgs,
	}
	cmd.AddCommand(newReplicateKeysCommand(), newReplicateCheckCommand())
	return cmd
}

func newReplicateKeysCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "keys NODE...",
		Short: "Make certificates by which nodes know each other in a check",
		Long: "Make an authority, unless the directory has one, and a certificate for each node, valid for a week. Copy a node's two files and " +
			"ca.crt to that node; ca.key stays where it is.",
		Example: "  berth replicate keys --dir keys alpha beta",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, nodes []string) error {
			for _, node := range nodes {
				if err := trial.WriteKeys(dir, node, time.Now()); err != nil {
					return err
				}
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s has certificates of %s, and ca.crt\n", dir, strings.Join(nodes, ", "))
			return err
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "berth-keys", "directory of the certificates")
	return cmd
}

// checkReplicationFlags describe one side of a check.
type checkReplicationFlags struct {
	node, pool           string
	keys                 string
	peerDir, authorities string
	poold                string
	listen, size, rate   string
	from, address        string
	deletes, udev        bool
}

func newReplicateCheckCommand() *cobra.Command {
	var f checkReplicationFlags
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Move a volume of its own between the pools of two nodes, compare it, and print how fast that was",
		Long: "Move a volume of its own between the pools of two nodes: in full, and then a change. One node serves it with --listen, the other " +
			"fetches it with --from. Every byte is compared, and both nodes delete the volume at the end. No other volume is touched. " +
			"Nodes prove who they are by the files of `berth replicate keys` or, in a cluster, by the certificates that their agents have (--peer-dir).",
		Example: "  alpha# berth replicate check --node alpha --pool btrfs:data --listen 10.0.0.1:7445 --size 4Gi\n" +
			"  beta#  berth replicate check --node beta --pool btrfs:data --from alpha --address 10.0.0.1:7445",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.node, "node", "", "name of this node, as in its certificate")
	flags.StringVar(&f.keys, "keys", "berth-keys", "directory with the certificate of this node and ca.crt: see `berth replicate keys`")
	flags.StringVar(&f.peerDir, "peer-dir", "", "use the certificate that the agent of this node keeps in this directory, in place of --keys; the agent's default is /run/berth-guard/peers")
	flags.StringVar(&f.authorities, "peer-authorities", defaultAuthorities, "file with the authorities that sign the certificates of --peer-dir")
	flags.StringVar(&f.poold, "poold", embedded, "the pool daemon: embedded, or unix:///path of the socket of one that runs")
	flags.StringVar(&f.pool, "pool", "", "pool that the volume is made in, by the name that reports have")
	flags.StringVar(&f.listen, "listen", "", "serve a volume on this address")
	flags.StringVar(&f.size, "size", "1Gi", "size of the volume; half of it is filled")
	flags.StringVar(&f.rate, "rate", noRate, "bytes a second that may leave this node, such as 50Mi; 0 is no limit")
	flags.StringVar(&f.from, "from", "", "fetch the volume of the node of this name")
	flags.StringVar(&f.address, "address", "", "address on which that node serves")
	flags.BoolVar(&f.deletes, "delete", false, "only delete the volume that a check left which was killed")
	addUdevFlag(cmd, &f.udev)
	cmd.MarkFlagsMutuallyExclusive("listen", "from")
	cmd.MarkFlagsMutuallyExclusive("keys", "peer-dir")
	cmd.MarkFlagsRequiredTogether("from", "address")
	return cmd
}

func (f *checkReplicationFlags) run(ctx context.Context, out, notes io.Writer) (err error) {
	if f.node == "" || f.pool == "" || f.listen == "" && f.from == "" {
		return errors.New("--node, --pool, and either --listen or --from are needed: see --help")
	}
	size, err := resource.ParseQuantity(f.size)
	if err != nil {
		return fmt.Errorf("--size %q: %w", f.size, err)
	}
	pace, err := pacing("--rate", f.rate)
	if err != nil {
		return err
	}
	own, err := f.source()
	if err != nil {
		return err
	}
	side := trial.Side{
		Identity: cert.Identity{Node: f.node, Source: own, Now: time.Now}, Now: time.Now, Pace: pace,
		Note: func(line string) { _, _ = fmt.Fprintln(notes, line) },
	}
	done, err := f.choose(ctx, &side)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	switch {
	case f.deletes:
		return side.Delete(ctx, cmp.Or(f.from, f.node))
	case f.listen != "":
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", f.listen)
		if err != nil {
			return err
		}
		return trial.Serve(ctx, side, size.Value(), listener)
	}
	figures, err := trial.Fetch(ctx, side, f.from, func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{Timeout: 10 * time.Second}).DialContext(ctx, "tcp", f.address)
	})
	if err != nil {
		return err
	}
	return trial.Print(out, figures)
}

// noRate is the rate that limits nothing.
const noRate = "0"

// pacing holds all streams that leave this node together to a rate in bytes a second, which a flag gave.
func pacing(flag, rate string) (func(wire.Want) stream.Pacer, error) {
	q, err := resource.ParseQuantity(rate)
	if err == nil && q.Sign() < 0 {
		err = errors.New("it is below 0")
	}
	if err != nil {
		return nil, fmt.Errorf("%s %q: %w", flag, rate, err)
	}
	limits := limit.NewLimits()
	limits.Set(limit.Rates{Node: q.Value()})
	return func(wire.Want) stream.Pacer { return limits.Gate(0) }, nil
}

// source is where this node's certificate comes from.
func (f *checkReplicationFlags) source() (cert.Source, error) {
	if f.peerDir == "" {
		return trial.ReadKeys(f.keys, f.node)
	}
	own := issue.Borrowed{Directory: f.peerDir, Name: agentProcess, Authorities: func() (*x509.CertPool, error) { return issue.ReadRoots(f.authorities) }}
	if own.Current() == nil {
		return nil, fmt.Errorf("no certificate of an agent is in --peer-dir %s: agents ask for one where guards run (chart value guard.enabled)", f.peerDir)
	}
	return own, nil
}

// choose finds the backend of the pool by the pool's name, in this process or behind a socket. done lets go of it.
func (f *checkReplicationFlags) choose(ctx context.Context, s *trial.Side) (done func() error, err error) {
	if f.poold == embedded {
		if err := untended(machineDir); err != nil {
			return nil, err
		}
	}
	d, err := newDisks(f.udev, nil) // of another poold's pools, this process mounts volumes all the same
	if err != nil {
		return nil, err
	}
	traits := provision.TraitsOf(provision.TypeOf(f.pool))
	var all provision.Provisioner
	for _, m := range d.members {
		if slices.Contains(m.Types, traits.Type) {
			all = m.Provisioner // and no other backend is asked for anything
		}
	}
	done = func() error { return nil }
	if f.poold != embedded {
		socket, ok := strings.CutPrefix(f.poold, "unix://")
		if !ok {
			return nil, fmt.Errorf("--poold %q is neither %s nor unix:// with a path", f.poold, embedded)
		}
		client, err := poold.Dial(ctx, socket)
		if err != nil {
			return nil, err
		}
		all, done = client, client.Close
	}
	s.Pool = provision.PoolRef{Type: traits.Type, Name: f.pool}
	s.Provisioner, s.Tree, s.Data = all, traits.Tree, trial.Files{Mounter: d.mounter}
	s.Copies, err = provision.ReplicatorOf(ctx, all, traits.Type)
	if err == nil {
		return done, nil
	}
	if errors.Is(err, provision.ErrUnsupported) {
		err = fmt.Errorf("volumes in pool %q cannot be replicated; in these they can: %s", f.pool, strings.Join(d.replicable(ctx), ", "))
	}
	return nil, errors.Join(err, done())
}

// replicable are the forms of the names of pools whose volumes can be copies.
func (d *disks) replicable(ctx context.Context) (names []string) {
	for _, m := range d.members {
		for _, poolType := range m.Types {
			if _, err := d.all.ReplicatorOf(ctx, poolType); err == nil {
				names = append(names, provision.TraitsOf(poolType).Prefix+"NAME")
			}
		}
	}
	return names
}
