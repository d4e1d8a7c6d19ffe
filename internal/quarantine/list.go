package quarantine

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/decide/entries"
)

// Missing says which half is lost: the object or the data.
type Missing string

const (
	// MissingObject: the data is there, the object is not.
	MissingObject Missing = "Object"
	// MissingData: the object is there, the data is not.
	MissingData Missing = "Data"
)

// ReasonNodeGone is the reason of missing data whose node has no StorageNode. The data is
// where the node is, and is found when the node returns.
const ReasonNodeGone = "NodeGone"

// Orphan is data without an object, or an object without data, on one node.
type Orphan struct {
	Node string `json:"node"`
	Pool string `json:"pool,omitempty"`
	// Name of the volume or the snapshot.
	Name    string  `json:"name"`
	Missing Missing `json:"missing"`
	// Claim that the volume was made for, as NAMESPACE/NAME, by the record beside the data; empty
	// if that does not say.
	Claim string            `json:"claim,omitempty"`
	Size  resource.Quantity `json:"size"`
	// Since is when it lost its other half, as far as that is known.
	Since *metav1.Time `json:"since,omitempty"`
	// Deadline is when the data is deleted; nil if it is kept for ever.
	Deadline *metav1.Time `json:"deadline,omitempty"`
	// Forgotten is when an administrator said that the data may be deleted; nil if none has.
	// That is valid for v1alpha1.ForgetValid.
	Forgotten *metav1.Time `json:"forgotten,omitempty"`
	Reason    string       `json:"reason"`
	Message   string       `json:"message,omitempty"`
}

// List reads the cluster and returns data without an object, and objects without data.
func List(ctx context.Context, c client.Reader) ([]Orphan, error) {
	var (
		nodes     v1alpha1.StorageNodeList
		volumes   v1alpha1.VolumeList
		snapshots v1alpha1.SnapshotList
	)
	for what, list := range map[string]client.ObjectList{"storage nodes": &nodes, "volumes": &volumes, "snapshots": &snapshots} {
		if err := c.List(ctx, list); err != nil {
			return nil, fmt.Errorf("listing %s: %w", what, err)
		}
	}
	return Find(nodes.Items, volumes.Items, snapshots.Items), nil
}

// Find returns data without an object, and objects without data, by node, name and pool.
func Find(nodes []v1alpha1.StorageNode, volumes []v1alpha1.Volume, snapshots []v1alpha1.Snapshot) []Orphan {
	var found []Orphan
	known := map[string]bool{}
	for i := range nodes {
		known[nodes[i].Name] = true
		found = append(found, dataOf(&nodes[i])...)
	}
	for i := range volumes {
		found = append(found, volumeLosses(&volumes[i], known)...)
	}
	for i := range snapshots {
		found = append(found, snapshotLosses(&snapshots[i], known)...)
	}
	slices.SortFunc(found, func(a, b Orphan) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Pool, b.Pool))
	})
	return found
}

// dataOf is the data without objects that a node reports.
func dataOf(n *v1alpha1.StorageNode) []Orphan {
	var found []Orphan
	for _, p := range n.Status.Pools {
		for _, i := range p.Inventory {
			if o := i.Orphan; o != nil {
				next := Orphan{
					Node: n.Name, Pool: p.Name, Name: i.Volume + i.Snapshot, Missing: MissingObject, Size: o.Size,
					Claim: o.Claim, Since: &o.Since, Deadline: o.Deadline, Reason: string(o.Reason), Message: o.Message,
				}
				if at := forgotten(n, p.Name, next.Name, o); at >= 0 {
					next.Forgotten = &n.Spec.Forget[at].At
				}
				found = append(found, next)
			}
		}
	}
	return found
}

// loss is the state of an object's data on a node, as the object shows it.
type loss struct {
	object               client.Object
	node, pool           string
	size                 resource.Quantity
	there, missing, gone bool // reported there, reported missing, no such StorageNode
	message, reason      string
}

func volumeLosses(v *v1alpha1.Volume, nodes map[string]bool) []Orphan {
	var found []Orphan
	for _, r := range v.Spec.Replicas {
		l := loss{object: v, node: r.Node, pool: r.Pool, size: v.Spec.Capacity, gone: !nodes[r.Node]}
		if e := v.Entry(r.Node); e != nil {
			l.there = e.State == v1alpha1.ReplicaReady || e.State == v1alpha1.ReplicaCopying
			l.missing = e.State == v1alpha1.ReplicaFailed && (e.Reason == v1alpha1.ReasonDeviceMissing || e.Reason == v1alpha1.ReasonPoolMissing && e.HasData())
			l.reason = e.Reason
			l.message = e.Message
		}
		found = l.add(found)
	}
	return found
}

func snapshotLosses(s *v1alpha1.Snapshot, nodes map[string]bool) []Orphan {
	var found []Orphan
	for _, r := range s.Spec.Replicas {
		l := loss{object: s, node: r.Node, pool: r.Pool, gone: !nodes[r.Node]}
		if e := s.Entry(r.Node); e != nil {
			l.there = e.State == v1alpha1.SnapshotReady || e.State == v1alpha1.SnapshotCopying
			l.missing = e.State == v1alpha1.SnapshotFailed && (e.Reason == v1alpha1.ReasonDeviceMissing || e.Reason == v1alpha1.ReasonPoolMissing && e.Taken != nil)
			l.reason = e.Reason
			l.message = e.Message
			if e.RestoreSize != nil {
				l.size = *e.RestoreSize
			}
		}
		found = l.add(found)
	}
	return found
}

func (l loss) add(found []Orphan) []Orphan {
	o := Orphan{Node: l.node, Pool: l.pool, Name: l.object.GetName(), Missing: MissingData, Size: l.size, Message: l.message}
	switch {
	case l.gone && (l.there || l.missing):
		o.Reason = ReasonNodeGone
		o.Message = fmt.Sprintf("node %s does not report: its data is where the node is, and is found when the node returns", l.node)
	case l.missing:
		o.Reason, o.Since = l.reason, said(l.object, l.node)
	default:
		return found
	}
	return append(found, o)
}

// said returns when a node last changed its entry in an object; nil if it is not known.
func said(o client.Object, node string) *metav1.Time {
	for _, f := range o.GetManagedFields() {
		if f.Manager == entries.FieldManager(node) && f.Subresource == "status" {
			return f.Time
		}
	}
	return nil
}
