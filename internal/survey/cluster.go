package survey

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/ledger"
	"berth.dev/berth/internal/quarantine"
	"berth.dev/berth/internal/schedule"
)

// Cluster holds the objects of a cluster at one moment.
type Cluster struct {
	*schedule.Lists
	Heartbeats schedule.Heartbeats
	LUNs       []v1alpha1.LUN
}

// The states of a node.
const (
	NodeReady = "Ready"
	// NodeNotReady: the agent runs and cannot list the node's pools.
	NodeNotReady = "NotReady"
	// NodeAway: the node, or its agent, does not answer.
	NodeAway = "Away"
)

// Node is the row of one node.
type Node struct {
	Name  string `json:"name"`
	State string `json:"state"`
	Pools int    `json:"pools"`
	// Total and Used are bytes of all pools; Used includes bytes of others than Berth.
	Total int64 `json:"total"`
	Used  int64 `json:"used"`
	// Volumes with a replica on the node, and data there that has no object.
	Volumes int    `json:"volumes"`
	Orphans int    `json:"orphans"`
	Message string `json:"message,omitempty"`
}

// Pool is the row of one pool of a node.
type Pool struct {
	Node   string              `json:"node"`
	Name   string              `json:"name"`
	Type   string              `json:"type"`
	Health v1alpha1.PoolHealth `json:"health"`
	// Total, Used and Foreign are bytes. Used is what is promised to volumes, and Foreign, which
	// is what others than Berth use.
	Total   int64 `json:"total"`
	Used    int64 `json:"used"`
	Foreign int64 `json:"foreign"`
	// FilledPercent is how full the data of a thin pool is; nil for other pools.
	FilledPercent *int64 `json:"filledPercent,omitempty"`
	// Volumes counts what takes room: volumes, snapshots and inline volumes.
	Volumes int      `json:"volumes"`
	Classes []string `json:"classes,omitempty"`
	Message string   `json:"message,omitempty"`
}

// Volume is the row of one Volume.
type Volume struct {
	Namespace string   `json:"namespace,omitempty"`
	Claim     string   `json:"claim,omitempty"`
	Name      string   `json:"name"`
	State     string   `json:"state"`
	Size      int64    `json:"size"`
	Class     string   `json:"class"`
	Nodes     []string `json:"nodes"`
	Pools     []string `json:"pools,omitempty"`
	// Pods that use the claim.
	Pods    []string `json:"pods,omitempty"`
	Message string   `json:"message,omitempty"`
}

// NodeRows returns the nodes that have reported, by name.
func (c Cluster) NodeRows() []Node {
	orphans := map[string]int{}
	for _, o := range quarantine.Find(c.StorageNodes, nil, nil) {
		orphans[o.Node]++
	}
	volumes := map[string]int{}
	for i := range c.Volumes {
		for _, r := range c.Volumes[i].Spec.Replicas {
			volumes[r.Node]++
		}
	}
	rows := []Node{} // a document has an empty list and not null
	for i := range c.StorageNodes {
		n := &c.StorageNodes[i]
		row := Node{Name: n.Name, Pools: len(n.Status.Pools), Volumes: volumes[n.Name], Orphans: orphans[n.Name]}
		row.State, row.Message = c.stateOf(n)
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
	for _, p := range c.PoolRows() {
		i, _ := slices.BinarySearchFunc(rows, p.Node, func(n Node, name string) int { return cmp.Compare(n.Name, name) })
		rows[i].Total += p.Total
		rows[i].Used += p.Used
	}
	return rows
}

// stateOf returns a node's state, and its message.
func (c Cluster) stateOf(n *v1alpha1.StorageNode) (state, message string) {
	if away := c.Heartbeats.Away(n.Name); away != "" {
		return NodeAway, away
	}
	switch ready := meta.FindStatusCondition(n.Status.Conditions, v1alpha1.ConditionReady); {
	case ready == nil:
		return NodeNotReady, "its agent has not reported yet"
	case ready.Status != "True":
		return NodeNotReady, ready.Message
	}
	return NodeReady, ""
}

// PoolRows returns the pools that the nodes report, by node and name.
func (c Cluster) PoolRows() []Pool {
	book := c.Book(c.Heartbeats)
	rows := []Pool{}
	for i := range c.StorageNodes {
		n := &c.StorageNodes[i]
		states := map[string]ledger.PoolState{}
		for _, s := range book.Pools(n.Name) {
			states[s.Pool.Name] = s
		}
		for j := range n.Status.Pools {
			p := &n.Status.Pools[j]
			row := Pool{
				Node: n.Name, Name: p.Name, Type: string(p.Provisioner), Health: p.Health, Total: p.Total.Value(),
				Foreign: p.Foreign.Value(), Used: states[p.Name].Used, Volumes: len(states[p.Name].Facts),
				Classes: p.Classes, Message: p.Message,
			}
			if p.Filled != nil && row.Total > 0 {
				row.FilledPercent = new(percent(p.Filled.Value(), row.Total))
			}
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, func(a, b Pool) int { return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Name, b.Name)) })
	return rows
}

// percent of a total, rounded down. The product of a huge size with 100 is more than 64 bits hold.
func percent(part, total int64) int64 {
	if total < 1<<50 {
		return part * 100 / total
	}
	return part / (total / 100)
}

// VolumeRows returns the Volumes, by namespace, claim and name.
func (c Cluster) VolumeRows() []Volume {
	pods, claims := podsOf(c.Pods), c.claimsOfVolumes()
	rows := []Volume{}
	for i := range c.Volumes {
		v := &c.Volumes[i]
		row := Volume{Name: v.Name, Size: v.Spec.Capacity.Value(), Class: v.Spec.PoolClass, Nodes: []string{}}
		row.State, row.Message = StateOf(v)
		if key, has := claims[v.Name]; has {
			row.Namespace, row.Claim, row.Pods = key.namespace, key.name, namesOf(pods[key])
		}
		if o := v.Status.Ownership; o != nil {
			for _, r := range o.Replicas {
				row.Nodes = append(row.Nodes, r.Node)
			}
		}
		for _, r := range v.Spec.Replicas {
			row.Nodes, row.Pools = append(row.Nodes, r.Node), append(row.Pools, r.Pool)
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b Volume) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Claim, b.Claim), cmp.Compare(a.Name, b.Name))
	})
	return rows
}

// The states of a volume that no entry of a node says.
const (
	VolumeDeleting = "Deleting"
	VolumeWaiting  = "Waiting"
	VolumeReady    = string(v1alpha1.ReplicaReady)
)

// StateOf returns the state of a volume, and its message: that of the first replica that is
// not ready.
func StateOf(v *v1alpha1.Volume) (state, message string) {
	if ready := meta.FindStatusCondition(v.Status.Conditions, v1alpha1.ConditionReady); ready != nil && ready.Status == "False" {
		state, message = ready.Reason, ready.Message
	}
	if v.DeletionTimestamp != nil {
		return VolumeDeleting, message
	}
	if state != "" {
		return state, message
	}
	if v.Spec.Replication.Kind != "" {
		return stateOfRecorded(v)
	}
	if len(v.Spec.Replicas) == 0 {
		return VolumeWaiting, "it has no node yet"
	}
	for _, r := range v.Spec.Replicas {
		switch e := v.Entry(r.Node); {
		case e == nil:
			return VolumeWaiting, "node " + r.Node + " has not answered yet"
		case e.State != v1alpha1.ReplicaReady:
			return string(e.State), e.Message
		}
	}
	return VolumeReady, ""
}

// stateOfRecorded is the state of a volume with a record of ownership. One that no pod uses is ready, too.
func stateOfRecorded(v *v1alpha1.Volume) (state, message string) {
	if v.Status.Ownership == nil {
		return VolumeWaiting, "no controller has begun its record yet"
	}
	if w := meta.FindStatusCondition(v.Status.Conditions, v1alpha1.ConditionWaiting); w != nil && w.Status == "True" {
		return VolumeWaiting, w.Message
	}
	return VolumeReady, ""
}
