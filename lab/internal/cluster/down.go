package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"golang.org/x/sync/errgroup"

	"berth.dev/berth/lab/internal/guest"
	"berth.dev/berth/lab/internal/network"
	"berth.dev/berth/lab/internal/process"
	"berth.dev/berth/lab/internal/progress"
)

// Down ends the named cluster and removes everything of it. A cluster that
// does not exist is no error.
func (l Lab) Down(ctx context.Context, name string) error {
	if err := needRoot(); err != nil {
		return err
	}
	p, err := newPaths(l.Root, name)
	if err != nil {
		return err
	}
	lock, err := takeLock(p.lock(), name)
	if err != nil {
		return err
	}
	defer lock.release()
	step := l.Report.Step("down")
	err = l.down(ctx, p, step)
	step.Done(err)
	if err != nil {
		return err
	}
	if err := lock.remove(); err != nil {
		return err
	}
	// This succeeds only with the last cluster: others still need the directory.
	_ = os.Remove(l.Root)
	return nil
}

func (l Lab) down(ctx context.Context, p paths, step progress.Step) error {
	st, err := loadState(p.state(), p.name)
	switch {
	case err == nil:
		step.Note("stopping processes")
		c := &Cluster{lab: l, paths: p, state: st}
		if err := errors.Join(kill(ctx, st.processes()), c.powerOffAll(ctx), c.SAN().off(ctx)); err != nil {
			return err
		}
	case !errors.Is(err, ErrNotUp):
		return err
	}
	if err := removeNetwork(ctx, p.network()); err != nil {
		return err
	}
	step.Note("removing files")
	if err := os.RemoveAll(p.dir()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing cluster state: %w", err)
	}
	return nil
}

// powerOffAll ends all machines, half-made ones too.
func (c *Cluster) powerOffAll(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, n := range c.Nodes() {
		m, err := n.open()
		if errors.Is(err, guest.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		g.Go(func() error { return m.PowerOff(ctx) })
	}
	return g.Wait()
}

// removeNetwork removes the cluster's network. First it ends all processes in its namespace,
// including those that a command started and died before it could record them.
func removeNetwork(ctx context.Context, name string) error {
	net, err := network.Open(name)
	if errors.Is(err, network.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	inside, err := process.InNamespace(net.Path())
	if err != nil {
		return err
	}
	if err := kill(ctx, others(inside)); err != nil {
		return err
	}
	return net.Destroy(ctx)
}

// others leaves out this process, whose first thread may have got stuck in the
// namespace: Down would kill itself instead of the cluster.
func others(all []process.Record) []process.Record {
	return slices.DeleteFunc(all, func(r process.Record) bool { return r.PID == os.Getpid() })
}

// kill ends processes at once. Their data goes with the cluster, so there is
// nothing for them to finish.
func kill(ctx context.Context, records []process.Record) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, rec := range records {
		g.Go(func() error { return rec.Stop(ctx, 0) })
	}
	return g.Wait()
}
