package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"

	"berth.dev/berth/test/scrape"
)

// measured is a run of two rounds on ten nodes.
func measured(pattern string) *results {
	r := &results{options: options{sizes: sizes{10}, rounds: 2, sides: regexp.MustCompile(pattern)}, version: "v1"}
	r.samples = map[int]map[string][]sample{10: {}}
	for _, s := range r.wanted() {
		one := sample{
			pods: 10, rate: 50, alone: []time.Duration{time.Second}, processor: 2 * time.Millisecond, whole: 20 * time.Millisecond,
			writes: scrape.Counts{"POST pods": 10}, batching: scrape.Counts{"hint_used": 9, "no_hint": 1}, calls: scrape.Counts{"timed Berth PreFilter Skip": 3},
		}
		if s.profile == stock {
			one.rate, one.failed, one.stuck = 25, 4, 1
		}
		r.samples[10][s.name] = []sample{one, one}
	}
	return r
}

func TestThePageShowsRatiosFailuresAndSkips(t *testing.T) {
	var page bytes.Buffer
	if err := measured("").page(&page); err != nil {
		t.Fatal(err)
	}
	for what, pattern := range map[string]string{
		"a ratio":                   `1 claim, plugin to 1 claim, stock +\| +10 \| +2\.00 `,
		"failures of all rounds":    `1 claim, stock +\| +25\.0 .*\| +8 \| +2 \|`,
		"skips of both rounds":      `no volumes, plugin +\| +6 \| +0 \|`,
		"how often hints were used": `no volumes in batches, plugin .*\| +20 \| +90\.0 \|`,
		"writes for each pod":       `POST pods +\| +1\.00`,
	} {
		if !regexp.MustCompile(pattern).MatchString(page.String()) {
			t.Errorf("%s is missing: no match for %s", what, pattern)
		}
	}
	if strings.Contains(page.String(), "%!") || strings.Contains(page.String(), "NaN") {
		t.Errorf("something was not filled in:\n%s", page.String())
	}
}

func TestUnmeasuredSidesAreNotShown(t *testing.T) {
	r := measured("1 claim, (plugin|stock)")
	if rows := r.comparisonsTable().Rows; len(rows) != 1 {
		t.Errorf("compared are %v", rows)
	}
	if bars := r.bars(); len(bars) != 2 {
		t.Errorf("the chart has %v", bars)
	}
}
