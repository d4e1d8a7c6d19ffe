// Package metrics measures an agent's operations on its node's disks, and shows the state
// of its pools.
//
// CSI's own histogram begins at 100 ms; most operations of a node are faster, so
// they are measured here with finer buckets.
package metrics

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/provision"
)

// Operations is a histogram of the operations on a node's disks.
type Operations struct {
	seconds *prometheus.HistogramVec
	clock   clock.PassiveClock
}

// NewOperations registers the histogram.
func NewOperations(r prometheus.Registerer, c clock.PassiveClock) *Operations {
	seconds := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "berth_agent_disk_operation_seconds",
		Help:    "Duration of operations on the node's disks, by operation and outcome.",
		Buckets: prometheus.ExponentialBucketsRange(0.0005, 60, 18),
	}, []string{"operation", "outcome"})
	r.MustRegister(seconds)
	return &Operations{seconds: seconds, clock: c}
}

// outcomes are the label values by class of error; the first that matches counts.
var outcomes = []struct {
	class   error
	outcome string
}{
	{nil, "ok"},
	{context.Canceled, "canceled"},
	{context.DeadlineExceeded, "timeout"},
	{provision.ErrNoSpace, "no_space"},
	{provision.ErrNotFound, "not_found"},
	{provision.ErrPoolMissing, "pool_missing"},
	{provision.ErrConflict, "conflict"},
	{provision.ErrInvalid, "invalid"},
	{provision.ErrUnsupported, "unsupported"},
	{provision.ErrInUse, "in_use"},
	{provision.ErrUnavailable, "unavailable"},
	{mount.ErrCorrupt, "corrupt"},
	{mount.ErrNotMounted, "not_mounted"},
}

func outcomeOf(err error) string {
	for _, o := range outcomes {
		if errors.Is(err, o.class) {
			return o.outcome
		}
	}
	return "error"
}

// time measures one operation: defer o.time("Create")(&err).
func (o *Operations) time(operation string) func(err *error) {
	start := o.clock.Now()
	return func(err *error) {
		o.seconds.WithLabelValues(operation, outcomeOf(*err)).Observe(o.clock.Since(start).Seconds())
	}
}

// Pools shows the pools, the volumes and the orphans, read at each scrape.
type Pools struct {
	latest  func() ([]provision.Pool, error)
	orphans func() int
	// orphanSnapshots counts snapshots, as orphans counts volumes.
	orphanSnapshots func() int
}

var (
	poolBytes = prometheus.NewDesc("berth_pool_bytes", "Bytes of a pool, by use: berth, foreign or free.", []string{"pool", "use"}, nil)
	poolCount = prometheus.NewDesc("berth_pool_volumes", "Berth's volumes in a pool.", []string{"pool"}, nil)
	reporting = prometheus.NewDesc("berth_agent_pools_reporting", "1 while the node's pools can be listed.", nil, nil)
	snapCount = prometheus.NewDesc("berth_pool_snapshots", "Berth's snapshots in a pool.", []string{"pool"}, nil)
	orphaned  = prometheus.NewDesc("berth_agent_orphaned_volumes", "Volumes on the node that no Volume accounts for.", nil, nil)
	poolFill  = prometheus.NewDesc("berth_thin_pool_filled_ratio", "How much of a thin pool is taken, of its data or of its metadata.", []string{"pool", "of"}, nil)
	adrift    = prometheus.NewDesc("berth_agent_orphaned_snapshots", "Snapshots on the node that no Snapshot accounts for.", nil, nil)
)

// RegisterPools registers the collector of the pools.
func RegisterPools(r prometheus.Registerer, latest func() ([]provision.Pool, error), orphans, orphanSnapshots func() int) {
	r.MustRegister(&Pools{latest: latest, orphans: orphans, orphanSnapshots: orphanSnapshots})
}

// Describe implements prometheus.Collector.
func (p *Pools) Describe(c chan<- *prometheus.Desc) {
	c <- poolBytes
	c <- poolCount
	c <- reporting
	c <- snapCount
	c <- poolFill
	c <- orphaned
	c <- adrift
}

// Collect implements prometheus.Collector.
func (p *Pools) Collect(c chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		c <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	pools, err := p.latest()
	if err == nil {
		gauge(reporting, 1)
	} else {
		gauge(reporting, 0)
	}
	gauge(orphaned, float64(p.orphans()))
	gauge(adrift, float64(p.orphanSnapshots()))
	for _, pool := range pools {
		var own int64
		for _, v := range pool.Volumes {
			own += v.Size
		}
		for _, s := range pool.Snapshots {
			own += s.Allocated
		}
		gauge(poolBytes, float64(own), pool.Name, "berth")
		gauge(poolBytes, float64(pool.Foreign), pool.Name, "foreign")
		gauge(poolBytes, float64(pool.Free), pool.Name, "free")
		gauge(poolCount, float64(len(pool.Volumes)), pool.Name)
		gauge(snapCount, float64(len(pool.Snapshots)), pool.Name)
		if provision.TraitsOf(pool.Type).FillsUp() && pool.Total > 0 {
			gauge(poolFill, float64(pool.Fill.Data)/float64(pool.Total), pool.Name, "data")
			gauge(poolFill, float64(pool.Fill.Metadata)/100, pool.Name, "metadata")
		}
	}
}
