package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestResultsOfABenchmarkAreReadByUnit(t *testing.T) {
	const output = `goos: linux
pkg: berth.dev/berth/internal/controller
BenchmarkCreate-2   	     100	  10164276 ns/op	         4.563 p50-ms-from-answer	        15.43 p95-ms-from-answer
PASS
`
	got, err := parseBenchmark(strings.NewReader(output))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{"ns/op": 10164276, "p50-ms-from-answer": 4.563, "p95-ms-from-answer": 15.43}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestABenchmarkThatPrintsNoResultIsAnError(t *testing.T) {
	if got, err := parseBenchmark(strings.NewReader("PASS\nok x 0.1s\n")); err == nil {
		t.Errorf("got %v", got)
	}
}
