package record

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
)

// The bounds of the schema. They hold here, too: an older definition may lack them.
const (
	maxReplicas = 8
	maxLosses   = 8
	maxKeys     = 8
	maxName     = 253
	maxID       = 64
	maxNumber   = 1<<30 - 1 // what a key at a disk has room for
	maxSeq      = 1<<53 - 1 // what every reader of JSON keeps exact
	maxTries    = 1000000
	maxSize     = 1 << 60 // bytes, as provisioners take
)

// The words of the API, in the order of the rules' constants.
var (
	kinds  = []v1alpha1.ReplicationKind{"", v1alpha1.ReplicationSnapshots, v1alpha1.ReplicationAttachments}
	phases = []v1alpha1.PrimaryPhase{v1alpha1.PrimaryReleased, v1alpha1.PrimaryPreparing, v1alpha1.PrimaryActive, v1alpha1.PrimaryFenced}
	states = []v1alpha1.OwnedState{v1alpha1.OwnedReserved, v1alpha1.OwnedSyncing, v1alpha1.OwnedReady, v1alpha1.OwnedLagging,
		v1alpha1.OwnedDiverged, v1alpha1.OwnedFailed, v1alpha1.OwnedLost, v1alpha1.OwnedRemoving, v1alpha1.OwnedGone}
)

// KindOf returns the kind of replicas for the API's word; false if it is unknown.
func KindOf(word v1alpha1.ReplicationKind) (ownership.Kind, bool) {
	i := slices.Index(kinds, word)
	return ownership.Kind(max(i, 0)), i >= 0
}

// check remembers the first value that is none that a rule writes.
type check struct{ err error }

func (r *check) that(ok bool, format string, args ...any) {
	if !ok && r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

func (r *check) within(field string, n, low, high int64) {
	r.that(low <= n && n <= high, "%s is %d, and must be from %d to %d", field, n, low, high)
}

func (r *check) count(field string, n, most int) {
	r.that(n <= most, "%s has %d items, and %d at most", field, n, most)
}

func (r *check) text(field, s string, most int) string {
	r.that(len(s) <= most, "%s has %d bytes, and %d at most", field, len(s), most)
	return s
}

func (r *check) name(field, s string) string {
	r.that(s != "", "%s is empty", field)
	return r.text(field, s, maxName)
}

// index finds the rules' constant for a word of the API.
func index[W ~string](r *check, field string, words []W, word W) int {
	i := slices.Index(words, word)
	r.that(i >= 0, "%s is %.40q, which is unknown", field, string(word))
	return max(i, 0)
}

func (r *check) epoch(field string, e *v1alpha1.Epoch) lineage.Epoch {
	r.within(field+".number", e.Number, 1, maxNumber)
	r.that(e.ID != "", "%s.id is empty", field)
	return lineage.Epoch{Number: uint64(max(e.Number, 0)), ID: r.text(field+".id", e.ID, maxID)}
}

func (r *check) optional(field string, e *v1alpha1.Epoch) lineage.Epoch {
	if e == nil {
		return lineage.Epoch{}
	}
	return r.epoch(field, e)
}

func (r *check) point(field string, p *v1alpha1.Point) lineage.Point {
	if p == nil {
		return lineage.Point{}
	}
	r.within(field+".seq", p.Seq, 1, maxSeq)
	return lineage.Point{Epoch: r.epoch(field+".epoch", &p.Epoch), Seq: uint64(max(p.Seq, 0))}
}

func (r *check) clock(field string, t *metav1.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	r.that(t.Year() >= 1 && t.Year() <= 9999, "%s is in the year %d", field, t.Year())
	return t.UTC()
}

// whole checks what no field shows alone.
func (r *check) whole(v *ownership.Volume) {
	r.that(len(v.Lineage) > 0, "lineage is empty")
	r.that(v.Lineage.Head() == v.Epoch, "the last epoch of the lineage is %v, and the epoch is %v", v.Lineage.Head(), v.Epoch)
	r.that(v.Primary.Node != "" || !v.Primary.Phase.Open(), "no node is named for phase %v", v.Primary.Phase)
	for i := 1; i < len(v.Writers); i++ {
		r.that(v.Writers[i-1].Primary.Node != v.Writers[i].Primary.Node, "node %s is a writer twice", v.Writers[i].Primary.Node)
	}
	for i := 1; i < len(v.Replicas); i++ {
		r.that(v.Replicas[i-1].Node != v.Replicas[i].Node, "node %s has two entries", v.Replicas[i].Node)
	}
}
