// Package metrics shows the volumes and nodes of a cluster to those who watch it, by the names of
// their claims.
//
// The kubelet shows the used bytes and inodes of each claim. What it cannot know is here: a
// volume's size in its pool, and what is wrong with a volume that no pod has mounted.
package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/survey"
)

// Cluster collects the metrics of a cluster at each scrape.
type Cluster struct {
	// Objects are the process's cache.
	Objects client.Reader
	// Away returns why a node does not answer, or nothing.
	Away func(node string) string
	// Silences returns for how long the guard of each node has not been seen to renew its Lease; nil where the driver
	// needs no guards.
	Silences func() map[string]time.Duration
	// Nodes says whether nodes are shown, too. The controllers of one driver show them, so that each is counted
	// once.
	Nodes bool
	// Elected is closed when this process leads. All others show only that they do not: two
	// processes must not show one volume.
	Elected <-chan struct{}
}

var _ prometheus.Collector = (*Cluster)(nil)

// timeout bounds a scrape: the objects come from memory.
const timeout = 10 * time.Second

// The labels of claims have the names that the kubelet's own metrics have, so that both can be joined.
var (
	ofVolume  = []string{"volume", "namespace", "persistentvolumeclaim", "pool_class"}
	leading   = prometheus.NewDesc("berth_controller_leading", "1 in the controller that leads, and 0 in the others.", nil, nil)
	capacity  = prometheus.NewDesc("berth_volume_capacity_bytes", "Bytes of a volume that its claim asked for.", ofVolume, nil)
	allocated = prometheus.NewDesc("berth_volume_allocated_bytes", "Bytes that a replica of a volume takes of its pool.", append(ofVolume, "node"), nil)
	state     = prometheus.NewDesc("berth_volume_state", "1 for the state of a volume.", append(ofVolume, "state"), nil)
	wanted    = prometheus.NewDesc("berth_volume_standbys_wanted", "Standbys that a shared disk is to have; 0 while no node writes.", ofVolume, nil)
	standing  = prometheus.NewDesc("berth_volume_standbys_ready", "Standbys of a shared disk that are ready, on nodes that answer.", ofVolume, nil)
	silence   = prometheus.NewDesc("berth_guard_silent_seconds", "How long the guard of a node that answers was not seen to renew its Lease.", []string{"node"}, nil)
	nodeState = prometheus.NewDesc("berth_node_state", "1 for the state of a node with an agent: Ready, NotReady or Away.", []string{"node", "state"}, nil)
)

// Describe implements prometheus.Collector.
func (c *Cluster) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{leading, capacity, allocated, state, wanted, standing, silence, nodeState} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c *Cluster) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	select {
	case <-c.Elected:
		gauge(leading, 1)
	default:
		gauge(leading, 0)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout) //nolint:forbidigo // a collector is given no context
	defer cancel()
	// They are only read here, and there may be many thousands.
	var volumes v1alpha1.VolumeList
	if err := c.Objects.List(ctx, &volumes, client.UnsafeDisableDeepCopy); err != nil {
		out <- prometheus.NewInvalidMetric(capacity, err)
		return
	}
	for i := range volumes.Items {
		c.volume(&volumes.Items[i], gauge)
	}
	var nodes v1alpha1.StorageNodeList
	if err := c.Objects.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		out <- prometheus.NewInvalidMetric(nodeState, err)
		return
	}
	var silent map[string]time.Duration
	if c.Silences != nil {
		silent = c.Silences()
	}
	for i := range nodes.Items {
		n := &nodes.Items[i]
		if c.Nodes {
			gauge(nodeState, 1, n.Name, c.stateOf(n))
		}
		if d, known := silent[n.Name]; known && c.Away(n.Name) == "" {
			gauge(silence, d.Seconds(), n.Name)
		}
	}
}

// volume shows one volume. A volume that no claim has shows empty names.
func (c *Cluster) volume(v *v1alpha1.Volume, gauge func(*prometheus.Desc, float64, ...string)) {
	labels := [4]string{v.Name, "", "", v.Spec.PoolClass}
	if ref := v.Spec.ClaimRef; ref != nil {
		labels[1], labels[2] = ref.Namespace, ref.Name
	}
	gauge(capacity, v.Spec.Capacity.AsApproximateFloat64(), labels[:]...)
	for _, r := range v.Status.Replicas {
		if r.Allocated != nil {
			gauge(allocated, r.Allocated.AsApproximateFloat64(), append(labels[:], r.Node)...)
		}
	}
	is, _ := survey.StateOf(v)
	gauge(state, 1, append(labels[:], is)...)
	if v.Spec.Replication.Kind != "" {
		shall, ready := survey.Standbys(v, c.Away)
		gauge(wanted, float64(shall), labels[:]...)
		gauge(standing, float64(ready), labels[:]...)
	}
}

func (c *Cluster) stateOf(n *v1alpha1.StorageNode) string {
	switch {
	case c.Away(n.Name) != "":
		return survey.NodeAway
	case meta.IsStatusConditionTrue(n.Status.Conditions, v1alpha1.ConditionReady):
		return survey.NodeReady
	}
	return survey.NodeNotReady
}
