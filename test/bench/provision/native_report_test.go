package main

import (
	"strings"
	"testing"
	"time"
)

func TestAPodThatTheKubeletSetAsideIsTold(t *testing.T) {
	at := time.Unix(0, 0)
	line := func(running time.Duration) timeline {
		return timeline{posted: at, scheduled: at.Add(time.Second), stations - 1: at.Add(running)}
	}
	r := nativeResults{lines: map[variant][]timeline{{"berth-ext4", ""}: {line(2 * time.Second), line(9 * time.Second)}}}
	if n := r.setAside(); n != 1 {
		t.Errorf("%d pods were set aside, want 1", n)
	}
	var page strings.Builder
	r.print(&page, options{runs: 2})
	for _, want := range []string{"up to ten seconds: 1", "volume with ext4, stock scheduler", "TopoLVM"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if got := r.lines[variant{"berth-ext4", ""}][0].journey(); got != " pod is bound to its node 1000 pod runs 2000 ms" {
		t.Errorf("the journey reads %q", got)
	}
}
