package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
type suite struct{ dir, binary string }

// run tries the changes, and returns those that lived.
func (t *tests) run(ctx context.Context, o options, chosen []*mutant) ([]*mutant, error) {
	notes := filepath.Join(t.dir, "reached")
	if err := os.WriteFile(notes, nil, 0o600); err != nil {
		return nil, err
	}
	began := time.Now()
	if out, err := t.try(ctx, 30*time.Minute, "BERTH_MUTANTS_REACHED="+notes); err != nil {
		return nil, fmt.Errorf("the tests fail without a change: %w\n%s", err, out)
	}
	took := time.Since(began)
	text, err := os.ReadFile(notes)
	if err != nil {
		return nil, err
	}
	reached := numbers(string(text))
	fmt.Fprintf(o.out, "%s: the tests take %s and get to %d places\n", t.code.target.dir, took.Round(time.Millisecond), len(reached))

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

// survives is whether the tests pass in spite of a change. Tests that hang have noticed it.
func (t *tests) survives(ctx context.Context, m *mutant, limit time.Duration) (bool, error) {
	_, err := t.try(ctx, limit, "BERTH_MUTANT="+strconv.Itoa(m.number))
	var failed *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	case err == nil:
		return true, nil
	case errors.As(err, &failed) || errors.Is(err, exec.ErrWaitDelay):
		return false, nil
	}
	return false, err
}

// try runs one suite after the other until one fails.
func (t *tests) try(ctx context.Context, limit time.Duration, environment string) (out []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit+10*time.Second)
	defer cancel()
	for _, s := range t.suites {
		command := exec.CommandContext(ctx, s.binary, "-test.failfast", "-test.short", "-test.timeout", limit.String())
		command.Dir = s.dir
		command.Env = append(os.Environ(), environment)
		command.WaitDelay = time.Second
		if out, err := command.CombinedOutput(); err != nil {
			return out, err
		}
	}
	return nil, nil
}
