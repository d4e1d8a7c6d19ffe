//go:build platform

package trial_test

import (
	"bytes"
	"context"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"berth.dev/berth/internal/mount/linux"
	"berth.dev/berth/internal/poold"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/btrfs"
	"berth.dev/berth/internal/provision/btrfs/btrfstest"
	"berth.dev/berth/internal/provision/btrfs/kernel"
	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/replicate/cert"
	"berth.dev/berth/internal/replicate/trial"
	"berth.dev/berth/internal/run"
)

// onBtrfs is a node whose pool is a filesystem of its own on this machine.
func onBtrfs(t testing.TB, keys, node string) trial.Side {
	t.Helper()
	f := btrfstest.New(t, node, btrfstest.Size)
	open, err := kernel.Open(f.FSID, true)
	must(t, err)
	must(t, open.EnableQuotas())
	open.Close()
	p, err := btrfs.New(btrfs.Config{Runner: run.Exec{}, RefreshInterval: time.Second, Mounted: func() (map[string]string, error) {
		return map[string]string{f.FSID: node}, nil // the other node's is on this machine, too
	}})
	must(t, err)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan struct{})
	go func() { defer close(ended); _ = p.Run(ctx) }()
	t.Cleanup(func() { stop(); <-ended; p.Wait() })
	m, err := linux.New(linux.Config{Runner: run.Exec{}})
	must(t, err)
	must(t, trial.WriteKeys(keys, node, time.Now()))
	own, err := trial.ReadKeys(keys, node)
	must(t, err)
	return trial.Side{
		Identity: cert.Identity{Node: node, Source: own, Now: time.Now}, Pool: f.Ref, Provisioner: p, Copies: p.Replicator(),
		Tree: provision.Subvolume, Data: trial.Files{Mounter: m}, Now: time.Now, Note: func(line string) { t.Log(node + ": " + line) },
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// behindASocket has poold serve the pools of a side.
func behindASocket(t *testing.T, s trial.Side) trial.Side {
	t.Helper()
	all := provision.NewMux(provision.Member{Types: []string{provision.Btrfs}, Provisioner: s.Provisioner})
	socket := filepath.Join(t.TempDir(), "sock")
	stop := conformance.Watching(t, all.Run, func(ctx context.Context) error {
		return poold.Run(ctx, poold.Config{Socket: socket, Node: poold.NewLocal(all, nil)})
	})
	client, err := poold.Dial(t.Context(), socket)
	must(t, err)
	t.Cleanup(func() { client.Close(); stop() })
	<-client.Changed()
	s.Provisioner = client
	s.Copies, err = client.ReplicatorOf(t.Context(), provision.Btrfs)
	must(t, err)
	return s
}

func TestATrialMovesRealData(t *testing.T) {
	keys := t.TempDir()
	here, there := onBtrfs(t, keys, "alpha"), onBtrfs(t, keys, "beta")
	t.Run("in one process", func(t *testing.T) { moves(t, &world{alpha: here, beta: there}) })
	t.Run("behind poold's sockets", func(t *testing.T) {
		moves(t, &world{alpha: behindASocket(t, here), beta: behindASocket(t, there)})
	})
}

func moves(t *testing.T, w *world) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	served := make(chan error, 1)
	go func() { served <- trial.Serve(t.Context(), w.alpha, 256<<20, l) }()
	o, err := trial.Fetch(t.Context(), w.beta, "alpha", directly(l.Addr().String()))
	must(t, err)
	must(t, <-served)
	if o.Compared != 256<<20/2+256<<20/50 || o.Legs[0].Raw < 128<<20 || o.Legs[1].Raw > 8<<20 {
		t.Errorf("the figures are %+v", o)
	}
	var out bytes.Buffer
	must(t, trial.Print(&out, o))
	t.Log("\n" + out.String())
	for _, part := range []string{"in full ", "an increment ", "133Mi of data compared: all as written"} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("the table has no %q", part)
		}
	}
	for _, s := range []trial.Side{w.alpha, w.beta} {
		if _, err := s.Provisioner.Get(t.Context(), trial.Volume("alpha")); err == nil {
			t.Errorf("node %s keeps the volume", s.Identity.Node)
		}
	}
}
