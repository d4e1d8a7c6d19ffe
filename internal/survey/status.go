package survey

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/quarantine"
)

// Count says how many of some things are as they should be.
type Count struct {
	Good int `json:"good"`
	Of   int `json:"of"`
}

func (c *Count) add(good bool) {
	c.Of++
	if good {
		c.Good++
	}
}

// Status sums a cluster up.
type Status struct {
	Controllers Count `json:"controllers"`
	Agents      Count `json:"agents"`
	// The others are nil where they are not installed.
	Schedulers      *Count `json:"schedulers,omitempty"`
	DiskControllers *Count `json:"diskControllers,omitempty"`
	DiskAgents      *Count `json:"diskAgents,omitempty"`
	Guards          *Count `json:"guards,omitempty"`

	Nodes Count `json:"nodes"`
	Pools Count `json:"pools"`
	// Total and Used are bytes of all pools.
	Total int64 `json:"total"`
	Used  int64 `json:"used"`
	// Fullest is the pool that has the largest part of its bytes used; nil if there is none.
	Fullest *Pool `json:"fullest,omitempty"`
	Volumes Count `json:"volumes"`
	// LUNs is nil if none are declared.
	LUNs *LUNs `json:"luns,omitempty"`
	// Waiting claims have no volume yet.
	Waiting int `json:"waiting"`
	// Orphans are data without an object, and objects without data.
	Orphans int `json:"orphans"`
	// Problems are sentences for people, each with a way on if there is one.
	Problems []string `json:"problems"`
}

// Status sums the cluster up.
func (c Cluster) Status(p Programs) Status {
	s := Status{Problems: []string{}}
	s.programs(p)
	for _, n := range c.NodeRows() {
		s.Nodes.add(n.State == NodeReady)
		if n.State != NodeReady {
			s.problem("node %s is %s: %s", n.Name, n.State, n.Message)
		}
	}
	for i := range c.StorageNodes {
		s.conditions(&c.StorageNodes[i])
	}
	s.pools(c.PoolRows())
	for i := range c.PoolClasses {
		class := &c.PoolClasses[i]
		if ready := meta.FindStatusCondition(class.Status.Conditions, v1alpha1.ConditionReady); ready != nil && ready.Status == metav1.ConditionFalse {
			s.problem("pool class %s is not ready: %s", class.Name, ready.Message)
		}
	}
	for _, v := range c.VolumeRows() {
		s.Volumes.add(v.State == VolumeReady)
		if v.State != VolumeReady && v.Message != "" {
			s.problem("volume %s%s is %s: %s", v.Name, claimOf(v), v.State, v.Message)
		}
	}
	s.standbys(c)
	s.luns(c.LUNs)
	s.claims(c)
	s.Orphans = len(quarantine.Find(c.StorageNodes, c.Volumes, c.Snapshots))
	if s.Orphans > 0 {
		s.problem("data and objects have lost each other %d times: see kubectl berth orphans", s.Orphans)
	}
	return s
}

// standbys adds the volumes that no node could take over.
func (s *Status) standbys(c Cluster) {
	claims := c.claimsOfVolumes()
	for i := range c.Volumes {
		v := &c.Volumes[i]
		if shall, ready := Standbys(v, c.Heartbeats.Away); shall > 0 && ready == 0 {
			of := claimOf(Volume{Namespace: claims[v.Name].namespace, Claim: claims[v.Name].name})
			s.problem("volume %s%s has no standby that is ready: kubectl berth replicas %s says why", v.Name, of, v.Name)
		}
	}
}

func (s *Status) problem(format string, args ...any) {
	s.Problems = append(s.Problems, fmt.Sprintf(format, args...))
}

func claimOf(v Volume) string {
	if v.Claim == "" {
		return ""
	}
	return fmt.Sprintf(" of claim %s/%s", v.Namespace, v.Claim)
}

// conditions adds what the node's agent says is wrong with its pools.
func (s *Status) conditions(n *v1alpha1.StorageNode) {
	for _, c := range n.Status.Conditions {
		wrong := c.Status == metav1.ConditionTrue
		switch c.Type {
		case v1alpha1.ConditionReady, v1alpha1.ConditionOrphaned: // told otherwise
			continue
		case v1alpha1.ConditionPoolsManaged:
			wrong = c.Status == metav1.ConditionFalse
		}
		if wrong {
			s.problem("node %s, %s: %s", n.Name, c.Reason, c.Message)
		}
	}
}

func (s *Status) pools(rows []Pool) {
	for i := range rows {
		p := &rows[i]
		s.Pools.add(p.Health == v1alpha1.PoolHealthy)
		s.Total += p.Total
		s.Used += p.Used
		if p.Health != v1alpha1.PoolHealthy {
			s.problem("pool %s of node %s is %s: %s", p.Name, p.Node, p.Health, p.Message)
		}
		if p.Total > 0 && (s.Fullest == nil || percent(p.Used, p.Total) > percent(s.Fullest.Used, s.Fullest.Total)) {
			s.Fullest = p
		}
	}
}

// claims counts the claims that wait for a volume of Berth's. A claim that waits for its first
// pod is none of them.
func (s *Status) claims(c Cluster) {
	pods := podsOf(c.Pods)
	for i := range c.Claims {
		claim := &c.Claims[i]
		if claim.Spec.VolumeName != "" {
			continue
		}
		class := c.classOf(claim)
		if class == nil || !c.Driver.Provisions(class) && !driver.Disk().Provisions(class) {
			continue
		}
		if late(class) && len(pods[claimKey{claim.Namespace, claim.Name}]) == 0 {
			continue
		}
		s.Waiting++
		s.problem("claim %s/%s waits for a volume: see kubectl berth explain pvc %s -n %s", claim.Namespace, claim.Name, claim.Name, claim.Namespace)
	}
}
