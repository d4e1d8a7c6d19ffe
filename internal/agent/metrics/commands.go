package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"berth.dev/berth/internal/run"
)

// Commands is a histogram of the commands that the node's tools run.
type Commands struct{ seconds *prometheus.HistogramVec }

var _ run.Observer = (*Commands)(nil)

// NewCommands registers the histogram.
func NewCommands(r prometheus.Registerer) *Commands {
	seconds := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "berth_poold_command_seconds",
		Help:    "Duration of the commands of pools and filesystems, by operation and outcome.",
		Buckets: prometheus.ExponentialBucketsRange(0.005, 300, 18),
	}, []string{"operation", "outcome"})
	r.MustRegister(seconds)
	return &Commands{seconds: seconds}
}

// Observe implements run.Observer.
func (c *Commands) Observe(command run.Command, d time.Duration, err error) {
	outcome := "ok"
	if err != nil {
		outcome = "error"
	}
	c.seconds.WithLabelValues(command.Operation, outcome).Observe(d.Seconds())
}
