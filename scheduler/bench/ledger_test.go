package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestResultsOfBenchmarksAreReadByLineAndUnit(t *testing.T) {
	const output = `goos: linux
BenchmarkFit/one_claim-2         	 6000000	       190.2 ns/op	       152.0 cpu-ns/op	       0 B/op	       0 allocs/op
BenchmarkRebuild 	       1	2400000000 ns/op	      1017 bytes/volume
PASS
`
	got, err := parseBenchmarks(strings.NewReader(output))
	if err != nil {
		t.Fatal(err)
	}
	want := benchmarks{
		"Fit/one_claim": {"ns/op": 190.2, "cpu-ns/op": 152, "B/op": 0, "allocs/op": 0},
		"Rebuild":       {"ns/op": 2.4e9, "bytes/volume": 1017},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got, err := parseBenchmarks(strings.NewReader("BenchmarkX-2 1 many ns/op")); err == nil {
		t.Errorf("a figure that is none gives %v", got)
	}
}
