package scrape

import (
	"bytes"
	"fmt"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Families are the metrics of a process, by name.
type Families map[string]*dto.MetricFamily

// Parse reads the text that a process exposes.
func Parse(text []byte) (Families, error) {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	found, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("reading metrics: %w", err)
	}
	return found, nil
}

// Sum adds up a family: the values of counters, and how often histograms were observed. name returns the count that
// the metric with these labels belongs to, or "" if it belongs to none. A label that is not there is "".
func (f Families) Sum(family string, name func(labels map[string]string) string) Counts {
	all := Counts{}
	for _, m := range f[family].GetMetric() {
		labels := map[string]string{}
		for _, l := range m.GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		if counted := name(labels); counted != "" {
			all[counted] += int(m.GetCounter().GetValue()) + int(m.GetHistogram().GetSampleCount())
		}
	}
	return all
}

// Counts are numbers of events, by name.
type Counts map[string]int

// Since returns how much each count has grown, without those that have not.
func (c Counts) Since(before Counts) Counts {
	grown := Counts{}
	for name, n := range c {
		if n -= before[name]; n > 0 {
			grown[name] = n
		}
	}
	return grown
}

// Total adds up the counts whose names have the prefix.
func (c Counts) Total(prefix string) (total int) {
	for name, n := range c {
		if strings.HasPrefix(name, prefix) {
			total += n
		}
	}
	return total
}
