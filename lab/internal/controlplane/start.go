package controlplane

import (
	"context"
	"fmt"
	"slices"
	"time"

	"berth.dev/berth/lab/internal/process"
	"berth.dev/berth/lab/internal/progress"
)

// Journal records the processes of a cluster beyond the end of the command.
type Journal interface {
	// Process returns the latest record under a name.
	Process(name string) (process.Record, bool)
	// RecordProcess records a process under its name, durably.
	RecordProcess(process.Record) error
}

// startLimit bounds the wait for each of the two readiness conditions. It is for components
// that hang: one that ended is noticed at once, and a busy machine takes minutes.
const startLimit = 4 * time.Minute

// Start starts the components that do not run, records each at once, and
// returns when the cluster accepts pods and knows its names. Running components stay as they are.
func Start(ctx context.Context, c Config, journal Journal, step progress.Step) error {
	if err := c.writeCertificates(); err != nil {
		return err
	}
	client, err := NewClient(c)
	if err != nil {
		return err
	}
	defer client.Close()
	for _, phase := range []struct {
		start []string
		path  string // answers 200 once the phase is over
	}{
		{[]string{etcd, apiServer}, "/readyz"},
		// Without its default service account a namespace refuses pods.
		{[]string{controllerManager, scheduler}, "/api/v1/namespaces/default/serviceaccounts/default"},
	} {
		if err := ensure(ctx, c, journal, phase.start); err != nil {
			return err
		}
		step.Note("waiting for %v", phase.start)
		if err := client.Wait(ctx, phase.path, func() error { return check(c, journal, phase.start) }); err != nil {
			return err
		}
		if !slices.Contains(phase.start, apiServer) {
			continue
		}
		if err := c.startDNS(ctx, client, journal); err != nil {
			return err
		}
	}
	return c.awaitDNS(ctx, journal, step)
}

func ensure(ctx context.Context, c Config, journal Journal, components []string) error {
	for _, name := range components {
		if rec, ok := journal.Process(name); ok && rec.Alive() {
			continue
		}
		rec, err := process.Start(ctx, c.spec(name))
		if err != nil {
			return err
		}
		if err := journal.RecordProcess(rec); err != nil {
			return err
		}
	}
	return nil
}

// check returns an error if a component has ended although it was started.
func check(c Config, journal Journal, components []string) error {
	for _, name := range components {
		if rec, ok := journal.Process(name); !ok || !rec.Alive() {
			return fmt.Errorf("%s ended instead of becoming ready: read its log %s", name, c.LogPath(name))
		}
	}
	return nil
}
