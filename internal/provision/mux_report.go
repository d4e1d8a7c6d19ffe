package provision

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// reportPatience is how long a report waits for a member. A provisioner answers from its
// cache. The time lets it find out which of its pools does not answer.
const reportPatience = 15 * time.Second

var errLate = fmt.Errorf("no answer in %v", reportPatience)

// lastReport keeps the latest report of a member.
type lastReport struct {
	mu    sync.Mutex
	pools []Pool
	// late counts the reports that are still running after their callers stopped waiting.
	late int
}

// Report implements Provisioner. A member that fails, or that is late, delays no other: its
// pools are reported as they were last known, with a problem, and the error names it. While
// it is late it is not asked again.
func (m *Mux) Report(ctx context.Context) ([]Pool, error) {
	patient, cancel := context.WithTimeoutCause(ctx, reportPatience, errLate)
	defer cancel()
	pools, failures := make([][]Pool, len(m.members)), make([]error, len(m.members))
	var asking sync.WaitGroup
	for i, member := range m.members {
		asking.Go(func() {
			var err error
			if pools[i], err = m.reports[i].ask(patient, member, m.changed.Set); err != nil {
				failures[i] = fmt.Errorf("%w: pools of type %s: %w", ErrUnavailable, member.Types[0], err)
			}
		})
	}
	asking.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return slices.Concat(pools...), errors.Join(failures...)
}

// ask waits for a member's report until ctx ends. The report itself is not cancelled then: it
// goes on in the background, and ask calls signal when it has ended.
func (l *lastReport) ask(ctx context.Context, member Member, signal func()) ([]Pool, error) {
	if l.isLate() {
		return l.known(errLate), errLate
	}
	type answer struct {
		pools []Pool
		err   error
	}
	answered := make(chan answer, 1)
	go func() {
		pools, err := member.Report(context.WithoutCancel(ctx))
		answered <- answer{pools, err}
	}()
	select {
	case a := <-answered:
		return l.take(a.pools, a.err)
	case <-ctx.Done():
	}
	l.addLate(1)
	go func() {
		a := <-answered
		_, _ = l.take(a.pools, a.err) // the next report returns them
		l.addLate(-1)
		signal()
	}()
	return l.known(context.Cause(ctx)), context.Cause(ctx)
}

// take stores a member's answer, and returns the pools that are known then.
func (l *lastReport) take(pools []Pool, err error) ([]Pool, error) {
	if err != nil && len(pools) == 0 {
		return l.known(err), err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pools = pools
	return pools, err
}

// known returns the pools that a member reported before it failed, each with a problem.
func (l *lastReport) known(failure error) []Pool {
	l.mu.Lock()
	defer l.mu.Unlock()
	pools := slices.Clone(l.pools)
	for i := range pools {
		if pools[i].Problem == "" {
			pools[i].Problem = "it cannot be asked, and may have changed since it could be: " + Problem(failure)
		}
	}
	return pools
}

func (l *lastReport) isLate() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.late > 0
}

func (l *lastReport) addLate(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.late += n
}
