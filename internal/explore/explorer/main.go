// Explorer plays random schedules of failures against the ownership rules and
// prints its findings. It is the long form of the package's tests.
//
//	go run ./internal/explore/explorer -schedules 1000000
//	go run ./internal/explore/explorer -exhaust "three nodes"
//	go run ./internal/explore/explorer -rules lease-is-proof
//	go run ./internal/explore/explorer -catch internal/explore/testdata/mutants
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"berth.dev/berth/internal/explore"
)

func main() {
	schedules := flag.Uint64("schedules", 100_000, "how many random schedules to play")
	from := flag.Uint64("from", 0, "number of the first schedule")
	name := flag.String("rules", "berth", "whose rules: berth, or a mutant by name")
	catch := flag.String("catch", "", "write the shortest schedule that catches each mutant into this directory")
	bounds := flag.String("exhaust", "", "visit every state of the bounds with these words in their name, or of \"all\", instead of random schedules")
	workers := flag.Int("workers", runtime.GOMAXPROCS(0), "how many schedules to play at once")
	flag.Parse()
	if err := run(*name, *catch, *bounds, *from, *schedules, *workers); err != nil {
		fmt.Fprintln(os.Stderr, "explorer:", err)
		os.Exit(1)
	}
}

func run(name, catch, bounds string, from, schedules uint64, workers int) error {
	if catch != "" {
		return catchMutants(catch, name, schedules)
	}
	m, ok := explore.MutantNamed(name)
	if !ok {
		return fmt.Errorf("no rules named %q; the mutants are: %s", name, strings.Join(mutantNames(), ", "))
	}
	if bounds != "" {
		return exhaust(bounds, m.Rules(), workers)
	}
	s := soak{rules: m.Rules(), last: from + schedules}
	s.next.Store(from)
	s.play(workers)
	if s.found == nil {
		return nil
	}
	return report(s.found, s.rules)
}

func mutantNames() (out []string) {
	for _, m := range explore.Mutants() {
		out = append(out, m.Name)
	}
	return out
}

// soak plays schedules until one breaks an invariant.
type soak struct {
	rules *explore.Rules
	next  atomic.Uint64
	last  uint64

	mu    sync.Mutex
	found *explore.Outcome
}

func (s *soak) play(workers int) {
	start, first := time.Now(), s.next.Load()
	var wg sync.WaitGroup
	for range workers {
		wg.Go(s.worker)
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	tick := time.NewTicker(5 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			progress(min(s.next.Load(), s.last)-first, s.last-first, start)
		case <-done:
			progress(min(s.next.Load(), s.last)-first, s.last-first, start)
			return
		}
	}
}

func (s *soak) worker() {
	buf := make([]explore.Event, 0, explore.Steps)
	for {
		seed := s.next.Add(1) - 1
		s.mu.Lock()
		stop := s.found != nil
		s.mu.Unlock()
		if seed >= s.last || stop {
			return
		}
		if o := explore.Random(seed, s.rules, buf); o.Violation != "" {
			o.Events = append([]explore.Event(nil), o.Events...)
			s.mu.Lock()
			s.found = &o
			s.mu.Unlock()
			fmt.Printf("schedule %d: %s\n", seed, o.Violation)
		}
	}
}

func progress(done, all uint64, start time.Time) {
	cpu := processorTime().Seconds()
	fmt.Printf("%d of %d schedules of %d steps, %s, %.0f schedules per second of one core\n",
		done, all, explore.Steps, time.Since(start).Round(time.Second), float64(done)/max(cpu, 0.001))
}

func report(o *explore.Outcome, rules *explore.Rules) error {
	events := explore.Shrink(o.Config, rules, o.Events, o.Violation)
	story := explore.Story{Detailed: os.Getenv("EXPLORER_DETAIL") != ""}
	w := explore.Replay(o.Config, rules, events, &story)
	fmt.Printf("\n%v\n%s", o.Config, story.String())
	return fmt.Errorf("broken: %s", w.Violation)
}

// catchMutants writes one transcript per mutant, without the story; the tests
// fill that in with -rewrite.
func catchMutants(dir, only string, schedules uint64) error {
	var survivors []string
	for _, m := range explore.Mutants() {
		if only != "berth" && m.Name != only {
			continue
		}
		o, ok := explore.Catch(m.Rules(), schedules)
		if !ok {
			survivors = append(survivors, m.Name)
			fmt.Printf("%-28s survives %d schedules\n", m.Name, schedules)
			continue
		}
		fmt.Printf("%-28s %2d events: %s\n", m.Name, len(o.Events), o.Violation)
		if err := os.WriteFile(filepath.Join(dir, m.Name), []byte(explore.Transcript(m, o)), 0o644); err != nil {
			return fmt.Errorf("writing transcript: %w", err)
		}
	}
	if len(survivors) > 0 {
		return fmt.Errorf("not caught: %s", strings.Join(survivors, ", "))
	}
	return nil
}
