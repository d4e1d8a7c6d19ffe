package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestTheLineOfABenchmarkIsRead(t *testing.T) {
	out := "goos: linux\nBenchmarkBtrfsBare-2   \t1\t 900 ns/op\t 7.5 MB/s\t 5.1 cpu-s/GiB\nBenchmarkBtrfs-2 \t 1\t 1000 ns/op\t 6.5 MB/s\t 6.1 cpu-s/GiB\nPASS\n"
	if f, err := parse(out, "BenchmarkBtrfs"); err != nil || f != (figures{6.5, 6.1}) {
		t.Errorf("%+v, %v", f, err)
	}
	if _, err := parse("PASS\n", "BenchmarkBtrfs"); err == nil {
		t.Error("a benchmark that printed nothing has figures")
	}
}

func TestThePageSaysWhichTargetIsMissed(t *testing.T) {
	for _, test := range []struct {
		berth figures
		want  []string
	}{
		{figures{85, 6}, []string{"at least 0.8: met", "at most 1.2 more: met"}},
		{figures{70, 7}, []string{"at least 0.8: **not met**", "at most 1.2 more: **not met**"}},
	} {
		r := results{load: []string{"1", "2"}, of: map[string][2][]figures{}}
		for _, p := range pairs {
			r.of[p.name] = [2][]figures{{test.berth}, {{100, 5}}}
		}
		var page bytes.Buffer
		r.print(&page)
		for _, part := range append(test.want, "Load average of the machine 1 before and 2 after") {
			if !strings.Contains(page.String(), part) {
				t.Errorf("the page has no %q:\n%s", part, page.String())
			}
		}
	}
}
