package main

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"berth.dev/berth/test/figures"
	"berth.dev/berth/test/scrape"
)

// sidesTable shows the figures of each side on so many nodes.
func (r *results) sidesTable(nodes int) *figures.Table {
	t := &figures.Table{Head: []string{"what", "pods a second", "alone p50, ms", "alone p99, ms", "scheduler's processor a pod, ms", "everything's, ms", "pods at once", "alone", "failed provisions", "stuck pods"}}
	for _, s := range r.wanted() {
		samples := r.samples[nodes][s.name]
		alone, failed, stuck, pods := []time.Duration(nil), 0, 0, 0
		for _, one := range samples {
			alone, failed, stuck, pods = append(alone, one.alone...), failed+one.failed, stuck+one.stuck, one.pods
		}
		t.Add(s.name, figures.Digits(figures.Median(each(samples, rate))), figures.Digits(milliseconds(figures.Quantile(alone, 0.5))), figures.Digits(milliseconds(figures.Quantile(alone, 0.99))),
			figures.Digits(figures.Median(each(samples, processor))), figures.Digits(figures.Median(each(samples, whole))), fmt.Sprintf("%d x %d", len(samples), pods), fmt.Sprint(len(alone)),
			fmt.Sprint(failed), fmt.Sprint(stuck))
	}
	return t
}

// comparisonsTable is how sides compare, on every number of nodes.
func (r *results) comparisonsTable() *figures.Table {
	t := &figures.Table{Head: []string{"what", "nodes", "ratio of pods a second", "95 % interval", "target", "", "ratio of the scheduler's processor time", "of everything's"}}
	for _, c := range comparisons {
		for _, nodes := range r.sizes {
			a, b := r.samples[nodes][c.a], r.samples[nodes][c.b]
			if len(a) == 0 || len(b) == 0 {
				continue
			}
			ratios := figures.Ratio(each(a, rate), each(b, rate))
			t.Add(c.a+" to "+c.b, fmt.Sprint(nodes), figures.Digits(ratios.Value), ratios.String(), c.wants(nodes), c.verdict(ratios, nodes),
				figures.Digits(figures.Ratio(each(a, processor), each(b, processor)).Value), figures.Digits(figures.Ratio(each(a, whole), each(b, whole)).Value))
		}
	}
	return t
}

func (c comparison) wants(nodes int) string {
	want, some := c.at(nodes)
	switch {
	case c.alike:
		return "1 in the interval"
	case some:
		return fmt.Sprintf("at least %g", want)
	default:
		return "-"
	}
}

// writesTable shows the writes that a pod costs the API server, by side.
func (r *results) writesTable(nodes int) *figures.Table {
	var named []string
	names := map[string]bool{}
	perPod := map[string]map[string]float64{}
	for _, s := range r.wanted() {
		samples := r.samples[nodes][s.name]
		if len(samples) == 0 {
			continue
		}
		named, perPod[s.name] = append(named, s.name), map[string]float64{}
		for _, one := range samples {
			for what, n := range one.writes {
				names[what] = true
				perPod[s.name][what] += float64(n) / float64(one.pods*len(samples))
			}
		}
	}
	t := &figures.Table{Head: append([]string{"request"}, named...)}
	for _, what := range sorted(names) {
		row := []string{what}
		for _, s := range named {
			row = append(row, fmt.Sprintf("%.2f", perPod[s][what]))
		}
		t.Add(row...)
	}
	return t
}

// skipTable shows the scheduler's own metrics of the plugins and of batching, for
// pods without volumes.
func (r *results) skipTable(nodes int) *figures.Table {
	t := &figures.Table{Head: []string{"what", "timed PreFilter that skipped", "timed PreFilter that did not", "calls of Filter and Score", "hints tried", "used, %"}}
	for _, s := range r.wanted() {
		samples := r.samples[nodes][s.name]
		if len(samples) == 0 || s.kind != (kind{}) {
			continue
		}
		called, hints := scrape.Counts{}, scrape.Counts{}
		for _, one := range samples {
			for what, n := range one.calls {
				called[what] += n
			}
			for what, n := range one.batching {
				hints[what] += n
			}
		}
		skipped := called["timed Berth PreFilter Skip"]
		other := called.Total("timed Berth PreFilter") - skipped
		filtered := called.Total("Berth Filter") + called.Total("Berth Score")
		t.Add(s.name, strconv.Itoa(skipped), strconv.Itoa(other), strconv.Itoa(filtered), strconv.Itoa(hints.Total("")),
			figures.Digits(100*float64(hints["hint_used"])/float64(max(hints.Total(""), 1))))
	}
	return t
}

func (r *results) bars() []figures.Bar {
	var bars []figures.Bar
	for _, nodes := range r.sizes {
		for _, s := range r.wanted() {
			samples := r.samples[nodes][s.name]
			if !s.batching && len(samples) > 0 {
				bars = append(bars, figures.Bar{
					Name:     fmt.Sprintf("%s, %d", s.name, nodes),
					Segments: []figures.Segment{{Name: string(s.profile), Value: figures.Median(each(samples, rate))}},
				})
			}
		}
	}
	return bars
}

// each is a figure of all samples.
func each(samples []sample, figure func(sample) float64) []float64 {
	var all []float64
	for _, one := range samples {
		all = append(all, figure(one))
	}
	return all
}

func rate(s sample) float64      { return s.rate }
func processor(s sample) float64 { return milliseconds(s.processor) }
func whole(s sample) float64     { return milliseconds(s.whole) }

func medianOf(d []time.Duration) time.Duration { return figures.Quantile(d, 0.5) }

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func sorted(set map[string]bool) []string {
	var all []string
	for name := range set {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}
