package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/ginkgo/v2/types"
)

func TestAReportCountsWhatTheSuiteChose(t *testing.T) {
	spec := func(name string, state types.SpecState, said string) types.SpecReport {
		return types.SpecReport{LeafNodeType: types.NodeTypeIt, LeafNodeText: name, State: state, Failure: types.Failure{Message: said}}
	}
	got := summarize("thin", &types.Report{RunTime: 90*time.Second + time.Millisecond, SpecReports: types.SpecReports{
		spec("grows", types.SpecStatePassed, ""),
		spec("shrinks", types.SpecStateFailed, "it does not"),
		spec("hangs", types.SpecStateTimedout, "too long"),
		spec("needs two nodes", types.SpecStateSkipped, "one node"),
		spec("of another driver", types.SpecStateSkipped, ""),
		{LeafNodeType: types.NodeTypeSynchronizedBeforeSuite, State: types.SpecStatePassed},
	}})
	want := result{Pools: "thin", Passed: 1, Failed: []string{"hangs", "shrinks"}, Unfit: 1, Took: 90 * time.Second}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestEachSkipHasAReason(t *testing.T) {
	got := parseSkips("# why\n\nfirst \\[Slow\\]\n\tone\n\ttwo\nsecond\n\tthree\n")
	if diff := cmp.Diff([]skip{{`first \[Slow\]`, "one two"}, {"second", "three"}}, got, cmp.AllowUnexported(skip{})); diff != "" {
		t.Error(diff)
	}
	for _, s := range skips {
		if _, err := regexp.Compile(s.pattern); err != nil || s.reason == "" {
			t.Errorf("%q is skipped because %q: %v", s.pattern, s.reason, err)
		}
	}
}

func TestEachKindOfPoolsHasADriverFile(t *testing.T) {
	files, err := filepath.Glob("drivers/*.yaml")
	if err != nil || len(files) != len(variants) {
		t.Errorf("%q, %v", files, err)
	}
	for name := range variants {
		text, err := os.ReadFile(filepath.Join("drivers", name+".yaml"))
		if err != nil || !strings.Contains(string(text), "FromExistingClassName: "+class) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestThePageIsMadeOfTheResults(t *testing.T) {
	got := render([]result{{Pools: "btrfs", Passed: 7, Failed: []string{"it shrinks"}, Unfit: 2, Took: 3 * time.Minute}}, []skip{{"hangs", "no such image"}})
	for _, want := range []string{"| btrfs |      7 |      1 |          2 |       3 |", "| btrfs | it shrinks |", "| `hangs` |", "no such image |"} {
		if !strings.Contains(got, want) {
			t.Errorf("the page lacks %q:\n%s", want, got)
		}
	}
}
