package main

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"berth.dev/berth/internal/explore"
)

// exhaust runs the bounds whose name contains the given words to their end.
func exhaust(words string, rules *explore.Rules, workers int) error {
	found := false
	bounds := append(explore.SmallBounds(), explore.LargeBounds()...)
	if words != "all" {
		bounds = append(bounds, explore.UnfinishedBounds()...)
	}
	for _, b := range bounds {
		if words != "all" && !strings.Contains(b.Name, words) {
			continue
		}
		found = true
		b.Workers = workers
		if err := exhaustOne(b, rules); err != nil {
			return err
		}
	}
	if !found {
		return fmt.Errorf("no bounds are named like %q; there are: %s", words, strings.Join(boundNames(), "; "))
	}
	return nil
}

func exhaustOne(b explore.Named, rules *explore.Rules) error {
	fmt.Println(b.Name)
	start, before := time.Now(), processorTime()
	tell := func(e explore.Explored) {
		cpu := (processorTime() - before).Seconds()
		fmt.Printf("  %s: %d states, %.0f visits per second of one core\n", time.Since(start).Round(time.Second), e.States, float64(e.Visits)/max(cpu, 0.001))
	}
	due := time.NewTicker(10 * time.Second)
	defer due.Stop()
	r := explore.Exhaust(b.Bounds, rules, explore.Watch{Due: due.C, Tell: tell})
	tell(r)
	fmt.Printf("  %v\n", r)
	if r.Violation == "" {
		return nil
	}
	return report(&explore.Outcome{Config: b.Settled(), Events: r.Events, Violation: r.Violation}, rules)
}

func boundNames() (out []string) {
	for _, b := range slices.Concat(explore.SmallBounds(), explore.LargeBounds(), explore.UnfinishedBounds()) {
		out = append(out, b.Name)
	}
	return out
}

// processorTime is the time that the process has used on all cores.
func processorTime() time.Duration {
	var use syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &use) // figures only
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}
