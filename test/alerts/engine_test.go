package alerts

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// interval between two samples.
const interval = 30 * time.Second

// history is what Prometheus remembers: for each series a value at every interval.
type history map[string]series

type series struct {
	labels labels.Labels
	value  func(at time.Duration) float64
}

// always adds a series of one value.
func (h history) always(selector string, value float64) history {
	return h.changing(selector, func(time.Duration) float64 { return value })
}

// growing adds a counter that grows by an amount at each interval.
func (h history) growing(selector string, each float64) history {
	return h.changing(selector, func(at time.Duration) float64 { return each * float64(at/interval) })
}

func (h history) changing(selector string, value func(at time.Duration) float64) history {
	l, err := parser.NewParser(parser.Options{}).ParseMetric(selector)
	if err != nil {
		panic(err)
	}
	return h.add(l, value)
}

// and adds another history.
func (h history) and(other history) history {
	maps.Copy(h, other)
	return h
}

func (h history) add(l labels.Labels, value func(at time.Duration) float64) history {
	h[l.String()] = series{labels: l, value: value}
	return h
}

// Querier implements storage.Queryable.
func (h history) Querier(from, to int64) (storage.Querier, error) { return querier{h, from, to}, nil }

type querier struct {
	history  history
	from, to int64
}

func (q querier) Select(_ context.Context, _ bool, hints *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	from, to := q.from, q.to
	if hints != nil {
		from, to = hints.Start, hints.End
	}
	var found []storage.Series
	for _, name := range slices.Sorted(maps.Keys(q.history)) {
		s := q.history[name]
		if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(s.labels.Get(m.Name)) }) {
			found = append(found, storage.NewListSeries(s.labels, s.samples(from, to)))
		}
	}
	slices.SortFunc(found, func(a, b storage.Series) int { return labels.Compare(a.Labels(), b.Labels()) })
	return &list{all: found, at: -1}
}

// LabelValues and LabelNames implement storage.LabelQuerier, which no query needs.
func (querier) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (querier) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (querier) Close() error { return nil }

// sample implements chunks.Sample.
type sample struct {
	at    int64
	value float64
}

func (s sample) T() int64                    { return s.at }
func (sample) ST() int64                     { return 0 }
func (s sample) F() float64                  { return s.value }
func (sample) H() *histogram.Histogram       { return nil }
func (sample) FH() *histogram.FloatHistogram { return nil }
func (sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample         { return s }

func (s series) samples(from, to int64) []chunks.Sample {
	var all []chunks.Sample
	for at := time.Duration(0); at.Milliseconds() <= to; at += interval {
		if at.Milliseconds() >= from {
			all = append(all, sample{at.Milliseconds(), s.value(at)})
		}
	}
	return all
}

// list implements storage.SeriesSet.
type list struct {
	all []storage.Series
	at  int
}

func (l *list) Next() bool                      { l.at++; return l.at < len(l.all) }
func (l *list) At() storage.Series              { return l.all[l.at] }
func (*list) Err() error                        { return nil }
func (*list) Warnings() annotations.Annotations { return nil }

// query returns what an expression is at a time.
func query(t *testing.T, h history, expression string, at time.Duration) promql.Vector {
	t.Helper()
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute, Parser: parser.NewParser(parser.Options{})})
	q, err := engine.NewInstantQuery(t.Context(), h, nil, expression, time.UnixMilli(at.Milliseconds()))
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	defer q.Close()
	v, err := q.Exec(t.Context()).Vector()
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return slices.Clone(v)
}
