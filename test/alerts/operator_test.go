package alerts

import (
	"bytes"
	"os"
	"regexp"
	"testing"

	operator "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"sigs.k8s.io/yaml"
)

// rendered is all that the chart renders with every value on; a test of the chart keeps it up to date.
const rendered = "../chart/testdata/everything.golden.yaml"

// duration is what the operator takes for an interval.
var duration = regexp.MustCompile(`^(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?$`)

func TestTheOperatorKnowsEachFieldOfTheChartsMonitors(t *testing.T) {
	text, err := os.ReadFile(rendered)
	if err != nil {
		t.Fatal(err)
	}
	monitors, rules := 0, 0
	for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
		var kind struct{ APIVersion, Kind string }
		if err := yaml.Unmarshal(document, &kind); err != nil || kind.APIVersion != "monitoring.coreos.com/v1" {
			continue
		}
		switch kind.Kind {
		case operator.PodMonitorsKind:
			monitors++
			var m operator.PodMonitor
			if err := yaml.UnmarshalStrict(document, &m); err != nil {
				t.Errorf("a PodMonitor: %v\n%s", err, document)
			}
			checkEndpoints(t, m)
		case operator.PrometheusRuleKind:
			rules++
			if err := yaml.UnmarshalStrict(document, &operator.PrometheusRule{}); err != nil {
				t.Errorf("a PrometheusRule: %v\n%s", err, document)
			}
		default:
			t.Errorf("the operator's types were not asked about kind %s", kind.Kind)
		}
	}
	if monitors < 2 || rules != 1 {
		t.Errorf("%d PodMonitors and %d PrometheusRules are rendered", monitors, rules)
	}
}

func checkEndpoints(t *testing.T, m operator.PodMonitor) {
	t.Helper()
	if len(m.Spec.PodMetricsEndpoints) == 0 || len(m.Spec.Selector.MatchLabels) == 0 {
		t.Errorf("PodMonitor %s reads no pods", m.Name)
	}
	for _, e := range m.Spec.PodMetricsEndpoints {
		if e.Port == nil || *e.Port == "" || !duration.MatchString(string(e.Interval)) {
			t.Errorf("PodMonitor %s reads port %v each %q", m.Name, e.Port, e.Interval)
		}
	}
}
