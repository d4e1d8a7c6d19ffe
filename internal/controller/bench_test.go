package controller_test

import (
	"slices"
	"testing"
	"time"

	"berth.dev/berth/internal/controller/controllertest"
)

// BenchmarkCreate measures a create with an agent that carves in no time. It also
// measures the time from the agent's answer to the return of the call: the agent's
// write, the event, and the call's own part.
func BenchmarkCreate(b *testing.B) {
	c := newCluster(b)
	n := c.node(b, "n", 1<<50)
	p := controllertest.Start(b, c.Environment)
	mustCreate(b, p, c.request(n))
	var late []time.Duration
	for b.Loop() {
		id := mustCreate(b, p, c.request(n)).ID
		late = append(late, time.Since(n.Answered(id)))
	}
	slices.Sort(late)
	b.ReportMetric(float64(late[len(late)/2].Microseconds())/1000, "p50-ms-from-answer")
	b.ReportMetric(float64(late[len(late)*95/100].Microseconds())/1000, "p95-ms-from-answer")
}
