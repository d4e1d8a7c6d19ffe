package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// tests are the tests that must notice the changes of a package, compiled with all of them.
type tests struct {
	*code
	dir    string
	suites []suite
}

// suite is the tests of one package.
type suite struct {
	dir, binary string
	flags       []string
	// tests are sorted, the quickest first.
	tests []test
}

// test is one test of a suite: how long it takes, and the changes that it reaches.
type test struct {
	name    string
	took    time.Duration
	reached map[string]bool
}

// reach runs each test without a change; it must pass. It returns all changes that they reach.
func (t *tests) reach(ctx context.Context) (map[string]bool, error) {
	all := map[string]bool{}
	for i := range t.suites {
		s := &t.suites[i]
		names, err := s.list(ctx)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			alone, err := s.alone(ctx, name, filepath.Join(t.dir, "reached"))
			if err != nil {
				return nil, err
			}
			s.tests = append(s.tests, alone)
			maps.Copy(all, alone.reached)
		}
		slices.SortFunc(s.tests, func(a, b test) int { return cmp.Compare(a.took, b.took) })
	}
	return all, nil
}

// list names the tests of a suite.
func (s *suite) list(ctx context.Context) ([]string, error) {
	command := exec.CommandContext(ctx, s.binary, "-test.list", "^(Test|Fuzz|Example)")
	command.Dir = s.dir
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("listing the tests of %s: %w", s.dir, err)
	}
	return strings.Fields(string(out)), nil
}

// alone runs one test without a change.
func (s *suite) alone(ctx context.Context, name, notes string) (test, error) {
	if err := os.WriteFile(notes, nil, 0o600); err != nil {
		return test{}, err
	}
	began := time.Now()
	if out, err := s.try(ctx, 30*time.Minute, []string{name}, "BERTH_MUTANTS_REACHED="+notes); err != nil {
		return test{}, fmt.Errorf("%s fails without a change: %w\n%s", name, err, out)
	}
	text, err := os.ReadFile(notes)
	return test{name: name, took: time.Since(began), reached: numbers(string(text))}, err
}

// rounds returns the tests that reach a change, in runs of which each takes longer than the
// one before: a quick test catches most changes.
func (s *suite) rounds(number string) (rounds []round) {
	room := time.Second
	for _, one := range s.tests {
		if !one.reached[number] {
			continue
		}
		if len(rounds) == 0 || rounds[len(rounds)-1].took > room {
			rounds, room = append(rounds, round{}), 3*room
		}
		last := &rounds[len(rounds)-1]
		last.names, last.took = append(last.names, one.name), last.took+one.took
	}
	return rounds
}

// round is one run of some tests of a suite, and how long it takes without a change.
type round struct {
	names []string
	took  time.Duration
}

// run tries the changes, and returns the survivors.
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
			lives, how, err := true, "no test gets there", error(nil)
			if reached[strconv.Itoa(m.number)] {
				lives, how, err = t.survives(ctx, m)
			}
			mu.Lock()
			defer mu.Unlock()
			done++
			if lives {
				lived = append(lived, m)
			}
			if o.verbose || lives {
				fmt.Fprintf(o.out, "%d/%d %s: %s:%d %s `%s`\n", done, len(chosen), how, m.file, m.line, m.kind, m.text)
			}
			return err
		})
	}
	return lived, group.Wait()
}

// survives says whether the tests that reach a change pass in spite of it, and how it went for people. A
// test that hangs counts as one that noticed it.
func (t *tests) survives(ctx context.Context, m *mutant) (lives bool, how string, err error) {
	number := strconv.Itoa(m.number)
	for _, s := range t.suites {
		for _, r := range s.rounds(number) {
			out, err := s.try(ctx, 5*r.took+20*time.Second, r.names, "BERTH_MUTANT="+number)
			var failed *exec.ExitError
			switch {
			case ctx.Err() != nil:
				return false, "", context.Cause(ctx)
			case errors.As(err, &failed) || errors.Is(err, exec.ErrWaitDelay):
				return false, "caught by " + catcher(out), nil
			case err != nil:
				return false, "", err
			}
		}
	}
	return true, "lived", nil
}

var failure = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

// catcher names the test that failed, by what a test binary printed. A name tells whether a change was
// caught by a test of it, or by chance.
func catcher(out []byte) string {
	if found := failure.FindSubmatch(out); found != nil {
		return string(found[1])
	}
	return "its end" // a panic, or a test that hung
}

// try runs some of the tests.
func (s *suite) try(ctx context.Context, limit time.Duration, names []string, environment string) (out []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit+10*time.Second)
	defer cancel()
	flags := []string{"-test.run", "^(" + strings.Join(names, "|") + ")$", "-test.failfast", "-test.timeout", limit.String()}
	command := exec.CommandContext(ctx, s.binary, slices.Concat(s.flags, flags)...)
	command.Dir = s.dir
	command.Env = append(os.Environ(), environment)
	command.WaitDelay = time.Second
	return command.CombinedOutput()
}
