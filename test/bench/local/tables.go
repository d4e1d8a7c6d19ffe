package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"berth.dev/berth/test/figures"
)

// target is the most that an operation may take, as a ratio to the bare command.
const target = 1.3

// of returns the seconds that a side took for a subject, or nil.
func (g *guestResults) of(about subject, side string) []float64 {
	for _, s := range g.Samples {
		if s.subject == about && s.Side == side {
			return s.Seconds
		}
	}
	return nil
}

// subjects returns the measured subjects in their order.
func (g *guestResults) subjects() (all []subject) {
	for _, s := range g.Samples {
		if !slices.Contains(all, s.subject) {
			all = append(all, s.subject)
		}
	}
	return all
}

func (s subject) title() string {
	how := "one after the other"
	if s.AtOnce > 1 {
		how = fmt.Sprintf("%d at once", s.AtOnce)
	}
	return s.Pool + ", " + s.Operation + ", " + how
}

// lines are the pairs of sides to compare: a side of Berth with another one.
var lines = []struct{ base, by, title string }{
	{bareSide, socketSide, ""},
	{bareSide, localSide, ", in process"},
}

func (g *guestResults) comparison() *figures.Table {
	t := &figures.Table{Head: []string{"what", "bare commands, ms", "Berth, ms", "ratio", "95 % interval", fmt.Sprintf("at most %g", target)}}
	for _, about := range g.subjects() {
		for _, line := range lines {
			base, took := g.of(about, line.base), g.of(about, line.by)
			if len(took) == 0 || len(base) == 0 {
				continue
			}
			ratio := figures.Ratio(took, base)
			t.Add(about.title()+line.title, milliseconds(figures.Median(base)), milliseconds(figures.Median(took)),
				figures.Digits(ratio.Value), ratio.String(), verdict(ratio))
		}
	}
	return t
}

// verdict says whether the target is met. One round has no interval, and so no verdict.
func verdict(r figures.Interval) string {
	switch {
	case r.Low == r.High:
		return "1 round"
	case r.Value <= target:
		return "met"
	default:
		return "not met"
	}
}

func (g *guestResults) processesTable() *figures.Table {
	t := &figures.Table{Head: []string{"operation", "its caller waits for", "what follows", "that takes, ms"}}
	for _, p := range g.Processes {
		t.Add(p.row(p.Pool + ", " + p.Operation)...)
	}
	for _, w := range g.Wiping {
		t.Add(w.Processes.row(fmt.Sprintf("%s, %s and wipe by %s", w.Processes.Pool, w.Processes.Operation, w.How))...)
	}
	return t
}

func (p processes) row(title string) []string {
	takes := "0"
	if len(p.Followed) > 0 {
		takes = milliseconds(figures.Median(p.Following))
	}
	return []string{title, p.each(p.Started), p.each(p.Followed), takes}
}

// each returns the processes of one operation: "1 lvcreate", or "1.02 lvcreate" where the
// number is not the same each time.
func (p processes) each(started map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(started)) {
		parts = append(parts, fmt.Sprintf("%.3g %s", float64(started[name])/float64(max(p.Operations, 1)), name))
	}
	if len(parts) == 0 {
		return "0"
	}
	return strings.Join(parts, ", ")
}

func (g *guestResults) wipingTable() *figures.Table {
	t := &figures.Table{Head: []string{"what", "the caller waits, ms", "the room is free, ms"}}
	for _, w := range g.Wiping {
		t.Add(fmt.Sprintf("%d MiB, wiped by %s", w.Size>>20, w.How), milliseconds(figures.Median(w.Deleted)), milliseconds(figures.Median(w.Freed)))
	}
	return t
}

func (r *results) idleTable() *figures.Table {
	t := &figures.Table{Head: []string{"process", "volumes", "memory, MiB", "of that not of files", "processor a minute, ms"}}
	for _, row := range []struct {
		name string
		i    idle
	}{
		{"agent, on the machine itself", r.agent},
		{"poold, in the guest", r.guest.Idle},
	} {
		minute := row.i.Processor.Seconds() / max(row.i.Observed.Minutes(), 1e-9)
		t.Add(row.name, fmt.Sprint(row.i.Volumes), mebibytes(row.i.Resident), mebibytes(row.i.Anonymous), milliseconds(minute))
	}
	return t
}

func (g *guestResults) statsTable() *figures.Table {
	t := &figures.Table{Head: []string{"poold", "at once", "calls a second", "slowest round", "fastest round", "processes"}}
	for _, a := range g.Stats {
		t.Add(a.Poold, fmt.Sprint(a.AtOnce), figures.Digits(figures.Median(a.PerSecond)),
			figures.Digits(slices.Min(a.PerSecond)), figures.Digits(slices.Max(a.PerSecond)), fmt.Sprint(a.Processes))
	}
	return t
}

// bars shows how long each side takes for each operation, one after the other, in milliseconds.
func (g *guestResults) bars() (bars []figures.Bar) {
	for _, about := range g.subjects() {
		if about.AtOnce > 1 {
			continue
		}
		for _, side := range []struct{ name, by string }{{bareSide, "bare commands"}, {socketSide, "Berth"}} {
			if took := g.of(about, side.name); len(took) > 0 {
				segment := figures.Segment{Name: side.by, Value: 1000 * figures.Median(took)}
				bars = append(bars, figures.Bar{Name: about.Pool + ", " + about.Operation, Segments: []figures.Segment{segment}})
			}
		}
	}
	return bars
}

// milliseconds prints seconds.
func milliseconds(seconds float64) string { return figures.Digits(1000 * seconds) }

func mebibytes(n int64) string { return figures.Digits(float64(n) / (1 << 20)) }
