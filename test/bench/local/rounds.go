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
	// many is how many volumes are created, at least twice as many as few. All other operations
	// are carried out on few of them.
	many, few int
	// sides by name, and their order.
	sides map[string]side
	names []string
	// counts returns the processes that Berth started since the last call.
	counts func() map[string]int
	// tidying is the work of Berth after its answers.
	tidying *tidying
	// settle waits until the machine has finished the work of the last operations.
	settle func() error
}

// rest waits until both Berth and the machine have finished the work of the last operations.
func (s series) rest() error {
	s.tidying.finish()
	return s.settle()
}

// span returns the range of volumes that a side carries out an operation on. The first few are
// copied, the next few are deleted without a copy. localSide only shows the cost of the socket,
// so it creates no more than these.
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

// measure carries out a series in rounds. Each round has all sides, and begins with
// another one each time, so that disturbances of the machine hit all sides alike.
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

// turn has a side carry out one operation on a range of volumes. It counts the processes that
// Berth starts for it, and waits for the work after the answers: that would disturb the next
// side, and be counted as its work.
func (s series) turn(ctx context.Context, name, operation string, from, to int, used *processes) (time.Duration, error) {
	if err := s.rest(); err != nil {
		return 0, err
	}
	s.counts() // drop earlier processes
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

// batch carries out one operation on a range of volumes.
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

// share returns the part of n that belongs to a round.
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

// merge adds up the processes of the same operation in the same kind of pool.
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
