package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Trims counts the trims of a node's filesystems, and shows when each was trimmed last.
type Trims struct {
	ended *prometheus.CounterVec
	bytes *prometheus.CounterVec
	last  *prometheus.GaugeVec
}

// NewTrims registers the metrics.
func NewTrims(r prometheus.Registerer) *Trims {
	t := &Trims{
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "berth_agent_trims_total", Help: "Trims of filesystems that came to their end or were given up, by outcome.",
		}, []string{"pool", "outcome"}),
		bytes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "berth_agent_trimmed_bytes_total", Help: "Bytes that filesystems have discarded in trims.",
		}, []string{"pool"}),
		last: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "berth_volume_trimmed_timestamp_seconds", Help: "When the filesystem of a volume was last trimmed to its end, in seconds since 1970.",
		}, []string{"volume", "pool"}),
	}
	r.MustRegister(t.ended, t.bytes, t.last)
	return t
}

// Trimmed counts a trim that ended, or was given up with an error.
func (t *Trims) Trimmed(pool string, bytes int64, err error) {
	t.ended.WithLabelValues(pool, outcomeOf(err)).Inc()
	t.bytes.WithLabelValues(pool).Add(float64(bytes))
}

// Last shows when a volume was last trimmed.
func (t *Trims) Last(volume, pool string, at time.Time) {
	t.last.WithLabelValues(volume, pool).Set(float64(at.Unix()))
}

// Gone shows a volume no more.
func (t *Trims) Gone(volume string) { t.last.DeletePartialMatch(prometheus.Labels{"volume": volume}) }
