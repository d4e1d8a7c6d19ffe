package quarantine

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
)

// waitingFor returns the object that is being deleted and waits on a node for a pool that is
// not there; it returns refused if there is none.
func waitingFor(ctx context.Context, c client.Reader, node, name string, refused error) (Orphan, error) {
	var object client.Object
	v, s := &v1alpha1.Volume{}, &v1alpha1.Snapshot{}
	if object = v; v1alpha1.IsSnapshotName(name) {
		object = s
	}
	err := c.Get(ctx, client.ObjectKey{Name: name}, object)
	if apierrors.IsNotFound(err) {
		return Orphan{}, refused
	}
	if err != nil {
		return Orphan{}, unread("looking for the object of the data", err)
	}
	o := Orphan{Node: node, Name: name, Missing: MissingData, Reason: v1alpha1.ReasonPoolMissing, Since: object.GetDeletionTimestamp()}
	waits := false
	if e := v.Entry(node); e != nil {
		waits = e.State == v1alpha1.ReplicaFailed && e.Reason == v1alpha1.ReasonPoolMissing && e.HasData()
		o.Pool, o.Size, o.Message = e.Pool, valueOf(e.Capacity), e.Message
	}
	if e := s.Entry(node); e != nil {
		waits = e.State == v1alpha1.SnapshotFailed && e.Reason == v1alpha1.ReasonPoolMissing && e.Taken != nil
		o.Pool, o.Size, o.Message = e.Pool, valueOf(e.RestoreSize), e.Message
	}
	if !waits || o.Since == nil {
		return Orphan{}, refused
	}
	return o, nil
}

func valueOf(q *resource.Quantity) resource.Quantity {
	if q == nil {
		return resource.Quantity{}
	}
	return *q
}
