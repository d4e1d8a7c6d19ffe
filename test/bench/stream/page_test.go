package main

import (
	"bytes"
	"maps"
	"reflect"
	"strings"
	"testing"
)

func TestTheLineOfABenchmarkIsRead(t *testing.T) {
	out := "goos: linux\nBenchmarkBtrfsBare-2   \t1\t 900 ns/op\t 7.5 MB/s\t 5.1 cpu-s/GiB\nBenchmarkBtrfs-2 \t 1\t 1000 ns/op\t 6.5 MB/s\t 6.1 cpu-s/GiB\nPASS\n"
	if f, err := parse(out, "BenchmarkBtrfs"); err != nil || !maps.Equal(f, figures{"ns/op": 1000, speed: 6.5, processor: 6.1}) {
		t.Errorf("%+v, %v", f, err)
	}
	if _, err := parse("PASS\n", "BenchmarkBtrfs"); err == nil {
		t.Error("a benchmark that printed nothing has figures")
	}
}

func TestThePageSaysWhichTargetIsMissed(t *testing.T) {
	for name, test := range map[string]struct {
		bulk, btrfs, increment, rest, late figures
		want                               []string
	}{
		"all met": {
			figures{speed: 85}, figures{processor: 6}, figures{"churn-%": 1.5, "churn-room-%": 1}, figures{"processes": 0}, figures{p99: 2.4},
			[]string{"at least 0.8: met", "at least 2: met", "at least 0.9: met", "at most 1.2 more: met", "at most 2: met", "at most 0: met", "at most 1.2: met"},
		},
		"none met": {
			figures{speed: 70}, figures{processor: 7}, figures{"churn-%": 3, "churn-room-%": 90}, figures{"processes": 1}, figures{p99: 2.6},
			[]string{"at least 0.8: **not met**", "at least 2: **not met**", "at least 0.9: **not met**", "at most 1.2 more: **not met**", "at most 2: **not met**", "at most 50: **not met**", "at most 0: **not met**", "at most 1.2: **not met**"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := results{load: []string{"1", "2"}, of: map[string][]figures{
				berthBulk: {test.bulk}, bareBulk: {{speed: 100}}, sshBulk: {{speed: 40}}, berthZFS: {test.bulk}, bareZFS: {{speed: 90}}, berthBtrfs: {test.btrfs}, bareBtrfs: {{processor: 5}},
				increments: {test.increment}, idle: {test.rest}, writesAlone: {{p99: 2}}, writes10s: {test.late}, writes: {test.late},
			}}
			var page bytes.Buffer
			r.print(&page)
			for _, part := range append(test.want, "Load average of the machine 1 before and 2 after") {
				if !strings.Contains(page.String(), part) {
					t.Errorf("the page has no %q:\n%s", part, page.String())
				}
			}
		})
	}
}

func TestWhatWasNotPrintedMeetsNoTarget(t *testing.T) {
	var page bytes.Buffer
	r := results{load: []string{"1", "2"}, of: map[string][]figures{idle: {{}}, increments: {{}}}}
	r.print(&page)
	if strings.Contains(page.String(), ": met") {
		t.Errorf("a target is met without a figure:\n%s", page.String())
	}
}

func TestTheRoundsAreReadAsTheyWereWritten(t *testing.T) {
	dir := t.TempDir()
	r := results{load: []string{"1", "2"}, of: map[string][]figures{berthBulk: {{speed: 1}, {speed: 2}}, idle: {{"processes": 0}}}}
	if err := r.write(dir); err != nil {
		t.Fatal(err)
	}
	again := results{of: map[string][]figures{}}
	if err := again.read(dir); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(again.of, r.of) {
		t.Errorf("%v", again.of)
	}
}
