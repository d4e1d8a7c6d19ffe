package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"
)

// results are the findings of the run.
type results struct {
	options
	// samples by number of nodes and name of the side, one for each round.
	samples map[int]map[string][]sample
	ledger  []ledgerFigure
	version string
	took    time.Duration
	// others is the share of the machine's processors that other programs used
	// while schedulers were measured.
	others float64
}

// measureAll measures every side in every round, on one size after the other.
func (r *results) measureAll(ctx context.Context) (err error) {
	dir := r.keep
	if dir == "" {
		if dir, err = os.MkdirTemp("", "bench-scheduling"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	fmt.Fprintln(os.Stderr, "==> starting etcd and the API server")
	s, err := startServer(r.options, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	if r.version, err = s.version(); err != nil {
		return err
	}
	if err := s.install(ctx); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop() // before the server
	g, ctx, err := setUp(ctx, s, r.root)
	if err != nil {
		return err
	}
	defer g.extender.stop()
	r.samples = map[int]map[string][]sample{}
	have, begun := 0, time.Now()
	for i, nodes := range r.sizes {
		if err := s.grow(ctx, have, nodes); err != nil {
			return err
		}
		have = nodes
		if err := r.measureSize(ctx, g, nodes, begun.Add(r.during*time.Duration(i+1)/time.Duration(len(r.sizes)))); err != nil {
			return err
		}
	}
	return nil
}

// measureSize measures in rounds. After the first it begins no round that would end
// after the deadline, if it took as long as the one before.
func (r *results) measureSize(ctx context.Context, g *stage, nodes int, deadline time.Time) error {
	watch, err := startWatch()
	if err != nil {
		return err
	}
	r.samples[nodes] = map[string][]sample{}
	if len(r.samples) == 1 {
		if err := r.ripen(ctx, g, nodes); err != nil {
			return err
		}
	}
	for round := range r.rounds {
		begun := time.Now()
		if err := r.measureRound(ctx, g, nodes, round); err != nil {
			return err
		}
		if now := time.Now(); round+1 < r.rounds && now.Add(now.Sub(begun)).After(deadline) {
			fmt.Fprintf(os.Stderr, "==> %d nodes: no time for more than %d rounds (-for)\n", nodes, round+1)
			break
		}
	}
	share, err := watch.others()
	r.others = max(r.others, share)
	return err
}

// ripen makes measurements that do not count: the first burst of a kind of objects.
// The API server gives each watch of a kind that was quiet so far room for ten
// events, ends a watch that falls behind that, and gives more room as it learns how
// many events there are. Without ripen the first side measured would pay for that.
func (r *results) ripen(ctx context.Context, g *stage, nodes int) error {
	for _, s := range ripening(r.wanted()) {
		fmt.Fprintf(os.Stderr, "==> %d nodes, not counted: %s\n", nodes, s.name)
		if _, err := g.measure(ctx, s, s.pods(nodes, r.factor), ""); err != nil {
			return fmt.Errorf("%s on %d nodes: %w", s.name, nodes, err)
		}
	}
	return nil
}

// ripening are the first side without claims and the first one with them.
func ripening(all []side) []side {
	var first []side
	for _, s := range all {
		if !slices.ContainsFunc(first, func(f side) bool { return (f.kind.claims > 0) == (s.kind.claims > 0) }) {
			first = append(first, s)
		}
	}
	return first
}

func (r *results) measureRound(ctx context.Context, g *stage, nodes, round int) error {
	keep := ""
	if r.profile {
		keep = r.keep
	}
	for _, s := range inTurn(r.wanted(), round) {
		fmt.Fprintf(os.Stderr, "==> %d nodes, round %d of %d: %s: ", nodes, round+1, r.rounds, s.name)
		out, err := g.measure(ctx, s, s.pods(nodes, r.factor), keep)
		if err != nil {
			fmt.Fprintln(os.Stderr)
			return fmt.Errorf("%s on %d nodes: %w", s.name, nodes, err)
		}
		fmt.Fprintf(os.Stderr, "%d pods, %.1f a second, alone %s, processor %s a pod, %s in all, %d provisions failed, %d pods stuck\n", out.pods, out.rate,
			medianOf(out.alone).Round(time.Millisecond), out.processor.Round(10*time.Microsecond), out.whole.Round(10*time.Microsecond), out.failed, out.stuck)
		r.samples[nodes][s.name] = append(r.samples[nodes][s.name], out)
	}
	return nil
}

// wanted are the sides that -only names.
func (r *results) wanted() []side {
	return slices.DeleteFunc(slices.Clone(sides), func(s side) bool { return !r.sides.MatchString(s.name) })
}

// inTurn reverses every other round, so that the after-effects of a measurement do
// not always meet the same one.
func inTurn(all []side, round int) []side {
	turned := slices.Clone(all)
	if round%2 == 1 {
		slices.Reverse(turned)
	}
	return turned
}

// watch tells how much of the machine other programs use.
type watch struct{ busy, own time.Duration }

func startWatch() (w watch, err error) {
	if w.busy, err = busyTime(); err != nil {
		return w, err
	}
	w.own, err = ownTime()
	return w, err
}

// others is their share of all processor time used since.
func (w watch) others() (float64, error) {
	now, err := startWatch()
	if err != nil || now.busy == w.busy {
		return 0, err
	}
	return max(0, 1-(now.own-w.own).Seconds()/(now.busy-w.busy).Seconds()), nil
}
