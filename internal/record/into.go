package record

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
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
	w.that(next.Kind != ownership.OneCopy, "a volume with one copy has no record")
	o := w.ownership(next)
	w.readBack(v, o, next)
	if w.err != nil {
		return nil, fmt.Errorf("the next record of ownership of volume %s is malformed: %w", v.Name, w.err)
	}
	written := v.DeepCopy()
	written.Status.Ownership = o
	return written, nil
}

func (r *check) ownership(v *ownership.Volume) *v1alpha1.Ownership {
	o := &v1alpha1.Ownership{
		Epoch:         writeEpoch(v.Epoch),
		Primary:       v1alpha1.Primary{Node: v.Primary.Node, Boot: v.Primary.Boot, Phase: word(r, "phase", phases, int(v.Primary.Phase))},
		RecoveryPoint: writePoint(v.RecoveryPoint),
		Clean:         v.Clean,
		ExpireAt:      writeTime(v.ExpireAt),
		Approved:      writePoint(v.Failover.Approved),
	}
	for _, b := range v.Lineage {
		o.Lineage = append(o.Lineage, v1alpha1.Branch{Epoch: writeEpoch(b.Epoch), From: writePoint(b.From)})
	}
	for _, l := range v.Losses {
		loss := v1alpha1.Loss{Epoch: writeEpoch(l.Epoch), Known: writePoint(l.Known)}
		if kept := writePoint(l.Kept); kept != nil {
			loss.Kept = *kept
		}
		o.Losses = append(o.Losses, loss)
	}
	for _, k := range v.Keys {
		o.Keys = append(o.Keys, v1alpha1.ReservationKey{Node: k.Node, Epoch: writeEpoch(k.Epoch), Fence: k.Fence})
	}
	o.FenceRequest = writeRequest(v.FenceRequest)
	if v.Sharing.ManyWriters {
		o.Writers, o.FenceRequest = r.writers(v), nil
	}
	for i := range v.Replicas {
		e := &v.Replicas[i]
		o.Replicas = append(o.Replicas, v1alpha1.OwnedReplica{
			Node: e.Node, State: word(r, "state", states, int(e.State)), Point: writePoint(e.Point),
			Unstaged: writeOptional(e.Unstaged), Fenced: writeOptional(e.Fenced), Tries: int32(e.Tries), RetryAt: writeTime(e.RetryAt),
		})
	}
	return o
}

// writers has the primary among the writers.
func (r *check) writers(v *ownership.Volume) (out []v1alpha1.Writer) {
	for _, w := range v.AllWriters() {
		out = append(out, v1alpha1.Writer{
			Node: w.Primary.Node, Boot: w.Primary.Boot, Phase: word(r, "writers.phase", phases, int(w.Primary.Phase)),
			Epoch: writeEpoch(w.Epoch), FenceRequest: writeRequest(w.FenceRequest),
		})
	}
	return out
}

func writeRequest(q ownership.FenceRequest) *v1alpha1.FenceRequest {
	if q == (ownership.FenceRequest{}) {
		return nil
	}
	return &v1alpha1.FenceRequest{Executor: q.Executor, Epoch: writeEpoch(q.Epoch)}
}

// same compares what is read with what was decided, whose times it rounds up.
var same = equality.Semantic.Copy()

func init() {
	if err := same.AddFunc(func(read, decided time.Time) bool { return read.Equal(fullSecond(decided)) }); err != nil {
		panic(err) // it has one form only
	}
}

// readBack makes sure that the next reader finds the very record that the rules decided, with nothing
// cut off that the API has no room for.
func (r *check) readBack(v *v1alpha1.Volume, o *v1alpha1.Ownership, next *ownership.Volume) {
	read := r.parameters(v)
	r.decided(&read, o)
	r.that(same.DeepEqual(&read, next), "it would be read as another one, or with other parameters than the spec has")
}

// fullSecond is the precision of the API. A deadline never becomes earlier.
func fullSecond(t time.Time) time.Time { return t.Add(time.Second - 1).Truncate(time.Second) }

func writeTime(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &metav1.Time{Time: fullSecond(t).UTC()}
}

func writeEpoch(e lineage.Epoch) v1alpha1.Epoch {
	return v1alpha1.Epoch{Number: int64(min(e.Number, maxNumber)), ID: e.ID}
}

func writeOptional(e lineage.Epoch) *v1alpha1.Epoch {
	if e.IsZero() {
		return nil
	}
	return new(writeEpoch(e))
}

func writePoint(p lineage.Point) *v1alpha1.Point {
	if p.IsZero() {
		return nil
	}
	return &v1alpha1.Point{Epoch: writeEpoch(p.Epoch), Seq: int64(min(p.Seq, maxSeq))}
}

// word is the API's word for a constant of the rules.
func word[W ~string](r *check, field string, words []W, i int) W {
	r.that(0 <= i && i < len(words), "%s %d is unknown", field, i)
	if r.err != nil {
		return ""
	}
	return words[i]
}
