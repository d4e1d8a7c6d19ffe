package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"berth.dev/berth/test/scrape"
)

// side is one thing that is measured: a scheduler and a kind of pod.
type side struct {
	name     string
	profile  profile
	kind     kind
	batching bool
}

// sample is one measurement of a side.
type sample struct {
	pods int
	// rate is pods a second, from the first that is bound to the last.
	rate float64
	// alone is how long pods took that were created one after the other.
	alone []time.Duration
	// processor is the scheduler's time for each pod, whole that of everything.
	processor, whole time.Duration
	// failed is how many provisions did; stuck, how many pods were not bound in
	// the end.
	failed, stuck int
	// of the pods at once:
	writes, batching, calls scrape.Counts
}

// Limits of one measurement.
const (
	warm        = 3 // pods that are not measured
	alonePods   = 10
	aloneTime   = 5 * time.Second // no more of them is begun after that
	patience    = 5 * time.Minute
	idle        = time.Minute // then pods that are left count as stuck
	profileTime = 5           // seconds
)

// measure measures a side once, on an empty cluster that it leaves empty.
func (g *stage) measure(ctx context.Context, s side, pods int, keep string) (out sample, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("nothing more after %s", patience))
	defer cancel()
	form := byCapacity
	if s.profile == extended {
		form = byAnnotation
	}
	if err := g.clear(ctx, form); err != nil {
		return out, err
	}
	if err := g.publishCapacity(ctx, form == byCapacity); err != nil {
		return out, err
	}
	text, err := configuration(g.chart, s.profile, s.batching, g.extender.url)
	if err != nil {
		return out, err
	}
	c, err := g.startScheduler(ctx, text)
	if err != nil {
		return out, err
	}
	defer func() {
		c.Kill()
		if err != nil {
			err = fmt.Errorf("%w\nthe end of the scheduler's log:\n%s", err, c.Tail())
			return
		}
		err = g.clear(ctx, form)
	}()
	g.serial++
	if err := g.warmUp(ctx, c, s.kind); err != nil {
		return out, err
	}
	if out.alone, err = g.oneByOne(ctx, s.kind, "alone", alonePods); err != nil {
		return out, err
	}
	err = g.atOnce(ctx, c, s, pods, &out, keep)
	return out, err
}

// warmUp waits until the scheduler has done the work of its start. The scheduler
// places pods without volumes before its ledger is complete, so the first pod has
// one; and then nothing may go on in the background.
func (g *stage) warmUp(ctx context.Context, c *scheduler, k kind) error {
	if _, err := g.oneByOne(ctx, kind{inline: true}, "first", 1); err != nil {
		return err
	}
	if _, err := g.oneByOne(ctx, k, "warm", warm); err != nil {
		return err
	}
	return c.quiet(ctx)
}

// names of pods that were never used before.
func (g *stage) names(what string, count int) []string {
	var all []string
	for i := range count {
		all = append(all, fmt.Sprintf("%s-%d-%d", what, g.serial, i))
	}
	return all
}

// oneByOne creates pods, each when the one before is bound.
func (g *stage) oneByOne(ctx context.Context, k kind, what string, count int) ([]time.Duration, error) {
	begun := time.Now()
	var took []time.Duration
	for _, name := range g.names(what, count) {
		if time.Since(begun) > aloneTime {
			break
		}
		one := []string{name}
		if err := g.createClaims(ctx, k, one); err != nil {
			return nil, err
		}
		if err := g.createPods(ctx, k, one, g.times); err != nil {
			return nil, err
		}
		created, bound, err := g.times.await(ctx, one, patience)
		if err != nil {
			return nil, err
		}
		took = append(took, bound[0].Sub(created[0]))
	}
	return took, nil
}

// atOnce creates pods as fast as the API server takes them.
func (g *stage) atOnce(ctx context.Context, c *scheduler, s side, pods int, out *sample, keep string) error {
	names := g.names("burst", pods)
	if err := g.createClaims(ctx, s.kind, names); err != nil {
		return err
	}
	if err := g.record(ctx, c, s, keep, "before"); err != nil {
		return err
	}
	before, err := g.look(ctx, c)
	if err != nil {
		return err
	}
	profiled := g.profile(ctx, c, s, keep)
	if err := g.createPods(ctx, s.kind, names, g.times); err != nil {
		return err
	}
	_, bound, err := g.times.await(ctx, names, idle)
	if err != nil && (!errors.Is(err, errStuck) || len(bound) < 2) {
		return err
	}
	after, err := g.look(ctx, c)
	if err != nil {
		return err
	}
	if err := g.record(ctx, c, s, keep, "after"); err != nil {
		return err
	}
	first, last := slices.MinFunc(bound, time.Time.Compare), slices.MaxFunc(bound, time.Time.Compare)
	out.pods, out.stuck, out.rate = pods, pods-len(bound), float64(len(bound)-1)/max(last.Sub(first).Seconds(), math.SmallestNonzeroFloat32)
	out.processor = (after.processor - before.processor) / time.Duration(pods)
	out.whole = (after.whole - before.whole) / time.Duration(pods)
	out.failed = after.failed - before.failed
	out.writes, out.batching, out.calls = after.writes.Since(before.writes), after.batching.Since(before.batching), after.calls
	return <-profiled
}

// state is the reading of one moment.
type state struct {
	processor, whole        time.Duration
	failed                  int
	writes, batching, calls scrape.Counts
}

func (g *stage) look(ctx context.Context, c *scheduler) (s state, err error) {
	theirs, err := c.metrics(ctx)
	if err != nil {
		return s, err
	}
	served, err := g.metrics(ctx)
	if err != nil {
		return s, err
	}
	s.writes, s.batching, s.calls = writes(served), batching(theirs), calls(theirs)
	s.failed = g.provisioner.count()
	if s.processor, err = processorTime(c.ID()); err != nil {
		return s, err
	}
	s.whole, err = ownTime()
	return s, err
}

// record keeps the metrics of the scheduler and the API server, and the scheduler's
// allocations.
func (g *stage) record(ctx context.Context, c *scheduler, s side, keep, when string) error {
	if keep == "" {
		return nil
	}
	served, err := g.core.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return err
	}
	counted, err := c.get(ctx, "/metrics")
	if err != nil {
		return err
	}
	allocated, err := c.get(ctx, "/debug/pprof/allocs")
	if err != nil {
		return err
	}
	for kind, data := range map[string][]byte{"server.txt": served, "txt": counted, "pprof": allocated} {
		name := fmt.Sprintf("%s-%d-%s.%s", s.name, g.serial, when, kind)
		if err := os.WriteFile(filepath.Join(keep, name), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// profile takes a processor profile while the pods are scheduled.
func (g *stage) profile(ctx context.Context, c *scheduler, s side, keep string) <-chan error {
	done := make(chan error, 1)
	if keep == "" {
		done <- nil
		return done
	}
	go func() {
		data, err := c.get(ctx, fmt.Sprintf("/debug/pprof/profile?seconds=%d", profileTime))
		if err == nil {
			err = os.WriteFile(filepath.Join(keep, fmt.Sprintf("%s-%d.pprof", s.name, g.serial)), data, 0o600)
		}
		done <- err
	}()
	return done
}
