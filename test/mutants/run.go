package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// tests are those that are to notice, compiled with all changes of a package.
type tests struct {
	*code
	dir    string
	suites []suite
}

// suite is the tests of one package.
type suite struct {
	dir, binary string
	flags       []string
	// reached are the numbers of the changes that its tests get to.
	reached map[string]bool
}

// reach runs the tests without a change: they are to pass. It returns all that they get to.
func (t *tests) reach(ctx context.Context) (map[string]bool, error) {
	all := map[string]bool{}
	notes := filepath.Join(t.dir, "reached")
	for i := range t.suites {
		s := &t.suites[i]
		if err := os.WriteFile(notes, nil, 0o600); err != nil {
			return nil, err
		}
		if out, err := s.try(ctx, 30*time.Minute, "BERTH_MUTANTS_REACHED="+notes); err != nil {
			return nil, fmt.Errorf("the tests fail without a change: %w\n%s", err, out)
		}
		text, err := os.ReadFile(notes)
		if err != nil {
			return nil, err
		}
		s.reached = numbers(string(text))
		maps.Copy(all, s.reached)
	}
	return all, nil
}

// run tries the changes, and returns those that lived.
func (t *tests) run(ctx context.Context, o options, chosen []*mutant) ([]*mutant, error) {
	began := time.Now()
	reached, err := t.reach(ctx)
	if err != nil {
		return nil, err
	}
	took := time.Since(began)
	fmt.Fprintf(o.out, "%s: the tests take %s and get to %d places\n", t.target.dir, took.Round(time.Millisecond), len(reached))

	var mu sync.Mutex
	var lived []*mutant
	done := 0
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(o.jobs)
	for _, m := range chosen {
		group.Go(func() error {
			lives, err := !reached[strconv.Itoa(m.number)], error(nil)
			how := "no test gets there"
			if !lives {
				lives, err = t.survives(ctx, m, 5*took+20*time.Second)
				how = "caught"
			}
			mu.Lock()
			defer mu.Unlock()
			done++
			if lives {
				lived = append(lived, m)
				if how == "caught" {
					how = "lived"
				}
			}
			if o.verbose || lives {
				fmt.Fprintf(o.out, "%d/%d %s: %s:%d %s `%s`\n", done, len(chosen), how, m.file, m.line, m.kind, m.text)
			}
			return err
		})
	}
	return lived, group.Wait()
}

// survives is whether the tests that get to a change pass in spite of it. Tests that hang
// have noticed it.
func (t *tests) survives(ctx context.Context, m *mutant, limit time.Duration) (bool, error) {
	number := strconv.Itoa(m.number)
	for _, s := range t.suites {
		if !s.reached[number] {
			continue
		}
		_, err := s.try(ctx, limit, "BERTH_MUTANT="+number)
		var failed *exec.ExitError
		switch {
		case ctx.Err() != nil:
			return false, context.Cause(ctx)
		case errors.As(err, &failed) || errors.Is(err, exec.ErrWaitDelay):
			return false, nil
		case err != nil:
			return false, err
		}
	}
	return true, nil
}

// try runs the tests.
func (s *suite) try(ctx context.Context, limit time.Duration, environment string) (out []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit+10*time.Second)
	defer cancel()
	command := exec.CommandContext(ctx, s.binary, slices.Concat(s.flags, []string{"-test.failfast", "-test.short", "-test.timeout", limit.String()})...)
	command.Dir = s.dir
	command.Env = append(os.Environ(), environment)
	command.WaitDelay = time.Second
	return command.CombinedOutput()
}
