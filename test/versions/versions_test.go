package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

func TestTestsThatPassedAreCountedWithoutTheirParts(t *testing.T) {
	events := `the cluster begins
{"Action":"run","Test":"TestA"}
{"Action":"output","Test":"TestA","Output":"=== RUN\n"}
{"Action":"pass","Test":"TestA/part"}
{"Action":"pass","Test":"TestA"}
{"Action":"skip","Test":"TestB"}
{"Action":"fail","Test":"TestC"}
{"Action":"pass","Test":"TestD"}
{"Action":"pass"}
`
	var shown bytes.Buffer
	n, err := count(strings.NewReader(events), &shown)
	if err != nil || n != 2 || shown.String() != "the cluster begins\n=== RUN\n" {
		t.Errorf("%d, %v, %q", n, err, shown.String())
	}
}

func TestThePageHasARowForEachVersionThatIsPromised(t *testing.T) {
	got := render(map[string]record{"1.36": {Kubernetes: "v1.36.4", Passed: counts{Rules: 70, Scheduler: 8, Volumes: 9}}},
		map[string][]string{"1.34": {"scheduler.enabled", "extender.marker.enabled"}})
	for _, want := range []string{
		"| 1.36       |  1.36.4 |                         70 |       9 |               8 |",
		"| 1.34       |    none |                   compiled |       0 |               0 |",
		"| 1.34       |           refused |         accepted |                 refused |",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the page lacks %q:\n%s", want, got)
		}
	}
}

func TestTheOldestVersionThatIsPromisedIsThatOfTheChart(t *testing.T) {
	chart, err := os.ReadFile("../../charts/berth/Chart.yaml")
	if err != nil || !strings.Contains(string(chart), `kubeVersion: ">=`+promised[len(promised)-1]+`.0-0"`) {
		t.Errorf("the chart says otherwise: %v", err)
	}
}

func TestTheMinorVersionOfARelease(t *testing.T) {
	for release, want := range map[string]string{"v1.36.4": "1.36", "1.37.0": "1.37", "v2": "2"} {
		if got := minorOf(release); got != want {
			t.Errorf("%s is %s", release, got)
		}
	}
}
