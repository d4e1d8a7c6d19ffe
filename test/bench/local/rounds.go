package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
)

// series are operations that are measured one after the other.
type series struct {
	pool       string
	atOnce     int
	operations []string
	// many volumes are created, at least twice as many as few; everything else is done to few
	// of them.
	many, few int
	// sides by name, and their order.
	sides map[string]side
	names []string
	// counts are the processes that Berth started since they were asked for.
	counts func() map[string]int
	// tidying is what Berth does after its answers.
	tidying *tidying
	// settle waits until the machine has done what was left of the last operations.
	settle func() error
}

// rest waits until neither Berth nor the machine has anything left to do of the last operations.
func (s series) rest() error {
	s.tidying.finish()
	return s.settle()
}

// span are the volumes that a side carries an operation out on, from one to another: those
// first that are copied, then those that are deleted without that. Who shows something beside
// the comparison itself makes no more than these.
func (s series) span(operation, name string) (from, to int) {
	switch {
	case operation == create && (name == bareSide || name == socketSide):
		return 0, s.many
	case operation == create:
		return 0, 2 * s.few
	case operation == deletion:
		return s.few, 2 * s.few
	default:
		return 0, s.few
	}
}

// measure carries a series out, in rounds. All sides are in each round, and each time
// another one begins, so what disturbs the machine disturbs them alike.
func (s series) measure(ctx context.Context, rounds int) (samples []sample, started []processes, err error) {
	for _, operation := range s.operations {
		about := subject{Pool: s.pool, Operation: operation, AtOnce: s.atOnce}
		seconds := map[string][]float64{}
		used := newProcesses(s.pool, operation)
		for round := range rounds {
			progress("%s volumes, %d at once, %s: round %d of %d", s.pool, s.atOnce, operation, round+1, rounds)
			for i := range s.names {
				name := s.names[(i+round)%len(s.names)]
				begin, end := s.span(operation, name)
				from, to := share(end-begin, rounds, round)
				took, err := s.turn(ctx, name, operation, begin+from, begin+to, &used)
				if err != nil {
					return nil, nil, fmt.Errorf("%s volumes, %s by %s: %w", s.pool, operation, name, err)
				}
				seconds[name] = append(seconds[name], took.Seconds()/float64(to-from))
			}
		}
		for _, name := range s.names {
			samples = append(samples, sample{about, name, seconds[name]})
		}
		started = append(started, used)
	}
	return samples, started, nil
}

// turn has a side carry out one operation on the volumes from one to another. What Berth starts
// for it is counted, and what follows is waited for: it would disturb whoever is next, and be
// taken for his.
func (s series) turn(ctx context.Context, name, operation string, from, to int, used *processes) (time.Duration, error) {
	if err := s.rest(); err != nil {
		return 0, err
	}
	s.counts() // those from before
	took, err := s.batch(ctx, s.sides[name], operation, from, to)
	if _, ours := s.sides[name].(berth); !ours || err != nil {
		return took, err
	}
	awaited := s.counts()
	following := s.tidying.finish()
	used.add(to-from, awaited, s.counts())
	if s.atOnce == 1 {
		used.Following = append(used.Following, following.Seconds()/float64(to-from))
	}
	return took, nil
}

// batch carries out one operation on the volumes from one to another.
func (s series) batch(ctx context.Context, one side, operation string, from, to int) (time.Duration, error) {
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(s.atOnce)
	begun := time.Now()
	for n := from; n < to; n++ {
		all.Go(func() error { return one.do(ctx, operation, n) })
	}
	err := all.Wait()
	return time.Since(begun), err
}

// share is the part of n that is of a round.
func share(n, rounds, round int) (from, to int) { return n * round / rounds, n * (round + 1) / rounds }

func newProcesses(pool, operation string) processes {
	return processes{Pool: pool, Operation: operation, Started: map[string]int{}, Followed: map[string]int{}}
}

func (p *processes) add(operations int, started, followed map[string]int) {
	p.Operations += operations
	for name, n := range started {
		p.Started[name] += n
	}
	for name, n := range followed {
		p.Followed[name] += n
	}
}

// merge adds up what is about the same.
func merge(all []processes) (merged []processes) {
	for _, p := range all {
		i := slices.IndexFunc(merged, func(m processes) bool { return m.Pool == p.Pool && m.Operation == p.Operation })
		if i < 0 {
			merged, i = append(merged, newProcesses(p.Pool, p.Operation)), len(merged)
		}
		merged[i].add(p.Operations, p.Started, p.Followed)
		merged[i].Following = append(merged[i].Following, p.Following...)
	}
	return merged
}
