package lineage

import "slices"

// Relation says how a replica's data relates to a lineage.
type Relation int

const (
	// Empty: the replica holds no snapshot.
	Empty Relation = iota
	// InLine: everything it holds lies in the lineage; it may receive the next increment.
	InLine
	// Diverged: its newest data does not lie in the lineage, some older snapshot does.
	Diverged
	// Unrelated: nothing it holds lies in the lineage; only a full copy helps.
	Unrelated
)

func (r Relation) String() string {
	return [...]string{"Empty", "InLine", "Diverged", "Unrelated"}[r]
}

// Relate compares a replica with the part of l that ends at end. A zero end
// means the whole of l. The points ascend; dirty says that the replica's live
// data differs from its newest snapshot. The returned point is the newest common
// one, the place to roll back to.
//
// A dirty head is divergence even on top of a good snapshot: the next increment
// would be applied to data that its sender does not have.
func (l Lineage) Relate(points []Point, dirty bool, end Point) (Relation, Point) {
	if len(points) == 0 {
		return Empty, Point{}
	}
	var common Point
	for _, p := range slices.Backward(points) {
		if (end.IsZero() || p.Seq <= end.Seq) && l.Contains(p) {
			common = p
			break
		}
	}
	switch {
	case common.IsZero():
		return Unrelated, Point{}
	case common == points[len(points)-1] && !dirty:
		return InLine, common
	default:
		return Diverged, common
	}
}

// Common returns the newest point that both ascending lists hold, zero if none.
func Common(a, b []Point) Point {
	for _, p := range slices.Backward(a) {
		if slices.Contains(b, p) {
			return p
		}
	}
	return Point{}
}
