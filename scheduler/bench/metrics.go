package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// families are the metrics of a process.
type families map[string]*dto.MetricFamily

func parse(raw []byte) (families, error) {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	found, err := parser.TextToMetricFamilies(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("reading metrics: %w", err)
	}
	return found, nil
}

// counts are sums by name.
type counts map[string]float64

// since is how much each count has grown, without those that have not.
func (c counts) since(before counts) counts {
	grown := counts{}
	for name, n := range c {
		if n -= before[name]; n > 0 {
			grown[name] = n
		}
	}
	return grown
}

// sum of all that have the prefix.
func (c counts) sum(prefix string) (total float64) {
	for name, n := range c {
		if strings.HasPrefix(name, prefix) {
			total += n
		}
	}
	return total
}

// writes are the requests that change something, by verb and resource. Leases are
// left out: the API server writes its own all the time.
func writes(from families) counts {
	all := counts{}
	for _, m := range from["apiserver_request_total"].GetMetric() {
		verb, resource := label(m, "verb"), label(m, "resource")
		if !slices.Contains([]string{"POST", "PUT", "PATCH", "APPLY", "DELETE"}, verb) || resource == "leases" {
			continue
		}
		if sub := label(m, "subresource"); sub != "" {
			resource += "/" + sub
		}
		all[verb+" "+resource] += m.GetCounter().GetValue()
	}
	return all
}

// batching are the scheduler's counts of opportunistic batching.
func batching(from families) counts {
	all := counts{}
	for _, m := range from["scheduler_batch_attempts_total"].GetMetric() {
		all[label(m, "result")] += m.GetCounter().GetValue()
	}
	return all
}

// calls are how often a plugin of Berth's was called, by plugin and phase; and,
// of the sample that the scheduler times, how often it skipped.
func calls(from families) counts {
	all := counts{}
	for _, m := range from["scheduler_plugin_evaluation_total"].GetMetric() {
		if plugin := label(m, "plugin"); strings.HasPrefix(plugin, "Berth") {
			all[plugin+" "+label(m, "extension_point")] += m.GetCounter().GetValue()
		}
	}
	for _, m := range from["scheduler_plugin_execution_duration_seconds"].GetMetric() {
		if plugin := label(m, "plugin"); strings.HasPrefix(plugin, "Berth") {
			all["timed "+plugin+" "+label(m, "extension_point")+" "+label(m, "status")] += float64(m.GetHistogram().GetSampleCount())
		}
	}
	return all
}

func label(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}
