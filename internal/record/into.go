package record

import (
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
)

// Into returns a copy of the Volume with the next record, for a PUT of its status. v is the object
// that was read: the copy has its resourceVersion. A record that changes a parameter, or that the
// API would not hold as it is, is an error: nothing is cut off or rounded away, except that a time
// becomes the next full second.
func Into(v *v1alpha1.Volume, next *ownership.Volume) (*v1alpha1.Volume, error) {
	w := &check{}
	given := w.parameters(v)
	w.that(sameParameters(&given, next), "the record changes parameters of the volume, which only its spec and its deletion do")
	w.that(0 < next.Kind && int(next.Kind) < len(kinds), "a volume with one copy has no record")
	o := w.ownership(next)
	if w.err == nil {
		w.readBack(v, o, next)
	}
	if w.err != nil {
		return nil, fmt.Errorf("the next record of ownership of volume %s is malformed: %w", v.Name, w.err)
	}
	written := v.DeepCopy()
	written.Status.Ownership = o
	return written, nil
}

func sameParameters(a, b *ownership.Volume) bool {
	return a.Kind == b.Kind && a.Factor == b.Factor && a.Size == b.Size && a.Sharing == b.Sharing && a.Deleting == b.Deleting &&
		a.Failover.Automatic == b.Failover.Automatic && a.Failover.MaxDataLoss == b.Failover.MaxDataLoss
}

func (r *check) ownership(v *ownership.Volume) *v1alpha1.Ownership {
	o := &v1alpha1.Ownership{
		Epoch:         r.writeEpoch(v.Epoch),
		Primary:       v1alpha1.Primary{Node: v.Primary.Node, Boot: v.Primary.Boot, Phase: word(r, "phase", phases, int(v.Primary.Phase))},
		RecoveryPoint: r.writePoint(v.RecoveryPoint),
		Clean:         v.Clean,
		ExpireAt:      writeTime(v.ExpireAt),
		Approved:      r.writePoint(v.Failover.Approved),
	}
	for _, b := range v.Lineage {
		o.Lineage = append(o.Lineage, v1alpha1.Branch{Epoch: r.writeEpoch(b.Epoch), From: r.writePoint(b.From)})
	}
	for _, l := range v.Losses {
		loss := v1alpha1.Loss{Epoch: r.writeEpoch(l.Epoch), Known: r.writePoint(l.Known)}
		if kept := r.writePoint(l.Kept); kept != nil {
			loss.Kept = *kept
		}
		o.Losses = append(o.Losses, loss)
	}
	for _, k := range v.Keys {
		o.Keys = append(o.Keys, v1alpha1.ReservationKey{Node: k.Node, Epoch: r.writeEpoch(k.Epoch), Fence: k.Fence})
	}
	if q := v.FenceRequest; q != (ownership.FenceRequest{}) {
		o.FenceRequest = &v1alpha1.FenceRequest{Executor: q.Executor, Epoch: r.writeEpoch(q.Epoch)}
	}
	for i := range v.Replicas {
		e := &v.Replicas[i]
		r.within("replicas.tries", int64(e.Tries), 0, maxTries)
		o.Replicas = append(o.Replicas, v1alpha1.OwnedReplica{
			Node: e.Node, State: word(r, "state", states, int(e.State)), Point: r.writePoint(e.Point),
			Unstaged: r.writeOptional(e.Unstaged), Fenced: r.writeOptional(e.Fenced), Tries: int32(e.Tries), RetryAt: writeTime(e.RetryAt),
		})
	}
	return o
}

// readBack makes sure that the next reader finds the very record that the rules decided.
func (r *check) readBack(v *v1alpha1.Volume, o *v1alpha1.Ownership, next *ownership.Volume) {
	read := r.parameters(v)
	r.decided(&read, o)
	if r.err != nil {
		return
	}
	if !equal(&read, next) {
		r.err = errors.New("it would be read as another one")
	}
}

func equal(a, b *ownership.Volume) bool {
	return sameParameters(a, b) && a.Failover.Approved == b.Failover.Approved && a.Epoch == b.Epoch && a.Primary == b.Primary &&
		a.RecoveryPoint == b.RecoveryPoint && a.Clean == b.Clean && a.FenceRequest == b.FenceRequest && sameTime(a.ExpireAt, b.ExpireAt) &&
		slices.Equal(a.Lineage, b.Lineage) && slices.Equal(a.Losses, b.Losses) && slices.Equal(a.Keys, b.Keys) &&
		slices.EqualFunc(a.Replicas, b.Replicas, func(x, y ownership.Replica) bool {
			same := sameTime(x.RetryAt, y.RetryAt)
			x.RetryAt, y.RetryAt = time.Time{}, time.Time{}
			return same && x == y
		})
}

func sameTime(read, decided time.Time) bool { return read.Equal(fullSecond(decided)) }

// fullSecond is the precision of the API. A deadline never becomes earlier.
func fullSecond(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(time.Second - 1).Truncate(time.Second)
}

func writeTime(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &metav1.Time{Time: fullSecond(t).UTC()}
}

func (r *check) writeEpoch(e lineage.Epoch) v1alpha1.Epoch {
	r.that(1 <= e.Number && e.Number <= maxNumber, "epoch number %d, and it must be from 1 to %d", e.Number, maxNumber)
	return v1alpha1.Epoch{Number: int64(min(e.Number, maxNumber)), ID: e.ID}
}

func (r *check) writeOptional(e lineage.Epoch) *v1alpha1.Epoch {
	if e.IsZero() {
		return nil
	}
	return new(r.writeEpoch(e))
}

func (r *check) writePoint(p lineage.Point) *v1alpha1.Point {
	if p.IsZero() {
		return nil
	}
	r.that(1 <= p.Seq && p.Seq <= maxSeq, "snapshot number %d, and it must be from 1 to %d", p.Seq, maxSeq)
	return &v1alpha1.Point{Epoch: r.writeEpoch(p.Epoch), Seq: int64(min(p.Seq, maxSeq))}
}

// word is the API's word for a constant of the rules.
func word[W ~string](r *check, field string, words []W, i int) W {
	r.that(0 <= i && i < len(words), "%s %d is unknown", field, i)
	if r.err != nil {
		return ""
	}
	return words[i]
}
