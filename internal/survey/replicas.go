package survey

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/record"
)

// The roles of a replica.
const (
	// RolePrimary: its node may write. Several may where a volume has several writers.
	RolePrimary = "Primary"
	// RoleFenced: its node could write and was shut out. It has not said yet that it has stopped.
	RoleFenced = "Fenced"
	// RoleStandby: every other replica.
	RoleStandby = "Standby"
)

// Replica is the row of one replica of a volume with a record of ownership.
type Replica struct {
	Namespace string `json:"namespace,omitempty"`
	Claim     string `json:"claim,omitempty"`
	Volume    string `json:"volume"`
	// Node, Role and Recorded are empty for a volume that has no replica now.
	Node string `json:"node,omitempty"`
	Role string `json:"role,omitempty"`
	// State is Recorded, what the record says, or NodeAway if the node does not answer: the record keeps
	// what the node said last.
	State    string `json:"state"`
	Recorded string `json:"recorded,omitempty"`
	// Epoch is the number of the volume's epoch. Where several nodes write, it is that of the node's own newest
	// epoch, zero if the node has opened none.
	Epoch int64 `json:"epoch"`
	// Reason and Message say what the replica waits for, and, in the first row of a volume, what the volume
	// waits for. Since is from when the volume waits; nil where it is not known.
	Reason  string       `json:"reason,omitempty"`
	Message string       `json:"message,omitempty"`
	Since   *metav1.Time `json:"since,omitempty"`
}

// ReplicaRows returns the replicas of the volumes that keep accepts, by namespace, claim and volume, of each
// the primary first. A volume without replicas has one row that names no node.
func (c Cluster) ReplicaRows(keep func(*v1alpha1.Volume) bool) []Replica {
	claims, rows := c.claimsOfVolumes(), []Replica{}
	for i := range c.Volumes {
		v := &c.Volumes[i]
		if v.Spec.Replication.Kind != "" && keep(v) {
			rows = append(rows, c.replicasOf(v, claims[v.Name])...)
		}
	}
	slices.SortStableFunc(rows, func(a, b Replica) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Claim, b.Claim), cmp.Compare(a.Volume, b.Volume))
	})
	return rows
}

func (c Cluster) replicasOf(v *v1alpha1.Volume, claim claimKey) []Replica {
	base := Replica{Namespace: claim.namespace, Claim: claim.name, Volume: v.Name}
	r, err := record.From(v)
	if err != nil {
		base.State, base.Reason, base.Message = VolumeWaiting, "NoRecord", err.Error()
		return []Replica{base}
	}
	base.Epoch = int64(r.Epoch.Number)
	if len(r.Replicas) == 0 {
		base.State = r.Primary.Phase.String()
		waits(&base, v)
		return []Replica{base}
	}
	rows := make([]Replica, 0, len(r.Replicas))
	for i := range r.Replicas {
		row := base
		c.replica(&row, r, &r.Replicas[i])
		rows = append(rows, row)
	}
	slices.SortStableFunc(rows, func(a, b Replica) int { return order(a.Role) - order(b.Role) })
	waits(&rows[0], v)
	return rows
}

func order(role string) int {
	return slices.Index([]string{RolePrimary, RoleFenced, RoleStandby}, role)
}

// replica fills in what the record and the node's own silence tell of one replica.
func (c Cluster) replica(row *Replica, v *ownership.Volume, e *ownership.Replica) {
	row.Node, row.Role, row.Recorded = e.Node, RoleOf(v, e), e.State.String()
	row.Epoch = int64(v.On(e.Node).Epoch.Number)
	row.State = row.Recorded
	if e.Tries > 0 {
		row.Reason = string(ownership.AttachmentFailed)
		row.Message = ownership.Why{Reason: ownership.AttachmentFailed, Node: e.Node, Count: e.Tries}.Message()
		if !e.RetryAt.IsZero() {
			row.Message += "; the next attempt is at " + e.RetryAt.UTC().Format(time.RFC3339)
		}
	}
	if away := c.Heartbeats.Away(e.Node); away != "" {
		row.State, row.Reason = NodeAway, v1alpha1.ReasonNodeAway
		row.Message = fmt.Sprintf("%s; it said %s last", away, row.Recorded)
	}
}

// RoleOf returns the role of a replica.
func RoleOf(v *ownership.Volume, e *ownership.Replica) string {
	v = v.On(e.Node)
	switch primary := v.Primary.Node == e.Node; {
	case primary && v.Primary.Phase.Open():
		return RolePrimary
	case primary && v.Primary.Phase == ownership.Fenced && e.Unstaged != v.Epoch:
		return RoleFenced
	}
	return RoleStandby
}

// Standbys returns how many standbys a volume is to have, and how many would take over now: they are ready, and away
// says of their nodes that they answer. A volume that no node writes is to have none: what is attached then is detached
// after a while.
func Standbys(v *v1alpha1.Volume, away func(node string) string) (shall, ready int) {
	owners := v.Status.Ownership.Owners()
	if len(owners) == 0 {
		return 0, 0
	}
	for _, r := range v.Status.Ownership.Replicas {
		if r.State == v1alpha1.OwnedReady && !slices.Contains(owners, r.Node) && away(r.Node) == "" {
			ready++
		}
	}
	return max(0, int(v.Spec.Replication.Factor)-len(owners)), ready
}

// waits fills in what the volume waits for, in place of what its replica waits for.
func waits(row *Replica, v *v1alpha1.Volume) {
	w := meta.FindStatusCondition(v.Status.Conditions, v1alpha1.ConditionWaiting)
	if w == nil || w.Status != metav1.ConditionTrue {
		return
	}
	row.Reason, row.Message, row.Since = w.Reason, w.Message, &w.LastTransitionTime
}

// VolumesNamed returns a filter for a Volume's name, or for a claim as NAME, in the default namespace, or
// NAMESPACE/NAME.
func (c Cluster) VolumesNamed(name, namespace string) func(*v1alpha1.Volume) bool {
	claims := c.claimsOfVolumes()
	for i := range c.Volumes {
		if c.Volumes[i].Name == name {
			return func(v *v1alpha1.Volume) bool { return v.Name == name }
		}
	}
	key := claimKey{namespace, name}
	if before, after, found := strings.Cut(name, "/"); found {
		key = claimKey{before, after}
	}
	return func(v *v1alpha1.Volume) bool { return claims[v.Name] == key }
}

// Machines are the storage nodes as the rules of failover see them. One that does not answer is lost.
func (c Cluster) Machines() (nodes []ownership.Machine) {
	for i := range c.StorageNodes {
		name := c.StorageNodes[i].Name
		nodes = append(nodes, ownership.Machine{Name: name, Lost: c.Heartbeats.Away(name) != ""})
	}
	return nodes
}
