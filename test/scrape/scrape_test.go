package scrape

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

const exposed = `# TYPE requests_total counter
requests_total{code="201",verb="POST"} 5
requests_total{code="409",verb="POST"} 1
requests_total{code="200",verb="LIST"} 7
# TYPE command_seconds histogram
command_seconds_bucket{command="lvs",le="+Inf"} 4
command_seconds_sum{command="lvs"} 0.1
command_seconds_count{command="lvs"} 4
`

func TestMetricsAreCountedByTheirLabels(t *testing.T) {
	from, err := Parse([]byte(exposed))
	if err != nil {
		t.Fatal(err)
	}
	by := func(label string) func(map[string]string) string {
		return func(labels map[string]string) string { return labels[label] }
	}
	for name, tt := range map[string]struct{ got, want Counts }{
		"a counter is added up over its other labels": {from.Sum("requests_total", by("verb")), Counts{"POST": 6, "LIST": 7}},
		"a histogram counts what was observed":        {from.Sum("command_seconds", by("command")), Counts{"lvs": 4}},
		"a metric that has no name is not counted":    {from.Sum("requests_total", by("resource")), Counts{}},
		"a family that is not there has no counts":    {from.Sum("others_total", by("verb")), Counts{}},
		"only what has grown has grown":               {Counts{"a": 5, "b": 2, "c": 1}.Since(Counts{"a": 1, "b": 2}), Counts{"a": 4, "c": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, tt.got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestATotalIsOfTheNamesWithThePrefix(t *testing.T) {
	c := Counts{"Berth Filter": 1, "Berth PreFilter": 2, "BerthVolumeBinding Filter": 4}
	if one, all := c.Total("Berth "), c.Total(""); one != 3 || all != 7 {
		t.Errorf("got %d and %d", one, all)
	}
}

func TestTextThatIsNoMetricsIsRefused(t *testing.T) {
	if _, err := Parse([]byte("{{{")); err == nil {
		t.Error("it was read")
	}
}
