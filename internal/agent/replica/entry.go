package replica

import (
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/resource"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
)

// maxMessage is what the schema allows.
const maxMessage = 1024

// readyEntry reports a replica that is as the spec wants it.
func readyEntry(v *v1alpha1.Volume, wish *v1alpha1.ReplicaSpec, record *provision.Volume) *v1alpha1.ReplicaStatus {
	e := carried(v, wish.Node)
	e.Pool = record.Pool.Name
	e.State = v1alpha1.ReplicaReady
	e.Ready = true
	e.Capacity, e.Allocated = bytes(record.Size), bytes(record.Size)
	e.Requested = new(v.Spec.Capacity.DeepCopy())
	e.Reason = v1alpha1.ReasonCarved
	return e
}

// keptEntry reports a replica that works as it is but could not become what
// the spec wants. Requested tells the controller that the wish was answered.
func keptEntry(v *v1alpha1.Volume, wish *v1alpha1.ReplicaSpec, record *provision.Volume, reason, message string) *v1alpha1.ReplicaStatus {
	e := readyEntry(v, wish, record)
	e.Reason, e.Message = reason, clip(message)
	return e
}

// failedEntry reports a replica that cannot be used.
func failedEntry(v *v1alpha1.Volume, wish *v1alpha1.ReplicaSpec, reason, message string) *v1alpha1.ReplicaStatus {
	e := carried(v, wish.Node)
	e.Pool = wish.Pool
	e.State = v1alpha1.ReplicaFailed
	e.Requested = new(v.Spec.Capacity.DeepCopy())
	e.Reason, e.Message = reason, clip(message)
	return e
}

// stuckEntry reports a replica that should go and cannot.
func stuckEntry(v *v1alpha1.Volume, node string, record *provision.Volume, reason, message string) *v1alpha1.ReplicaStatus {
	e := carried(v, node)
	e.Pool = record.Pool.Name
	e.State = v1alpha1.ReplicaFailed
	e.Capacity, e.Allocated = bytes(record.Size), bytes(record.Size)
	e.Reason, e.Message = reason, clip(message)
	return e
}

// goneEntry reports that nothing is left on the node.
func goneEntry(v *v1alpha1.Volume, node string) *v1alpha1.ReplicaStatus {
	e := &v1alpha1.ReplicaStatus{Node: node, State: v1alpha1.ReplicaGone, Reason: v1alpha1.ReasonRemoved}
	if old := v.Entry(node); old != nil {
		e.Pool = old.Pool
	} else if wish := wishFor(v, node); wish != nil {
		e.Pool = wish.Pool
	}
	return e
}

// carried begins an entry with what this package does not decide.
func carried(v *v1alpha1.Volume, node string) *v1alpha1.ReplicaStatus {
	e := &v1alpha1.ReplicaStatus{Node: node}
	if old := v.Entry(node); old != nil {
		e.Active, e.UnstagedEpoch = old.Active, old.UnstagedEpoch
	}
	return e
}

// sameEntry compares quantities by value: the API server may write them in
// another form.
func sameEntry(a, b *v1alpha1.ReplicaStatus) bool {
	if a == nil || b == nil {
		return a == b
	}
	x, y := *a, *b
	x.Capacity, x.Allocated, x.Requested = nil, nil, nil
	y.Capacity, y.Allocated, y.Requested = nil, nil, nil
	return x == y && sameQuantity(a.Capacity, b.Capacity) && sameQuantity(a.Allocated, b.Allocated) &&
		sameQuantity(a.Requested, b.Requested)
}

func sameQuantity(a, b *resource.Quantity) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Cmp(*b) == 0
}

// clip shortens a message to what the schema allows, at a rune's boundary.
func clip(s string) string {
	if len(s) <= maxMessage {
		return s
	}
	end := maxMessage
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}

func bytes(n int64) *resource.Quantity { return resource.NewQuantity(n, resource.BinarySI) }
