package lineage_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"berth.dev/berth/internal/lineage"
)

var (
	e1 = lineage.Epoch{Number: 1, ID: "one"}
	e2 = lineage.Epoch{Number: 2, ID: "two"}
	e3 = lineage.Epoch{Number: 3, ID: "three"}
	// forked: epoch 2 left epoch 1 at 3 and was left at 5 by epoch 3.
	forked = lineage.Lineage{{Epoch: e1}, {Epoch: e2, From: at(e1, 3)}, {Epoch: e3, From: at(e2, 5)}}
	// abandoned: epoch 3 left epoch 1 directly, as if epoch 2 had not been.
	abandoned = lineage.Lineage{{Epoch: e1}, {Epoch: e2, From: at(e1, 3)}, {Epoch: e3, From: at(e1, 2)}}
)

func at(e lineage.Epoch, seq uint64) lineage.Point { return lineage.Point{Epoch: e, Seq: seq} }

func TestALineageContains(t *testing.T) {
	tests := map[string]struct {
		lineage lineage.Lineage
		point   lineage.Point
		want    bool
	}{
		"includes a point before the fork":                      {forked, at(e1, 2), true},
		"includes the fork":                                     {forked, at(e1, 3), true},
		"excludes writes of the old epoch after the fork":       {forked, at(e1, 4), false},
		"includes writes of the next epoch after the fork":      {forked, at(e2, 4), true},
		"excludes a number that the epoch never had":            {forked, at(e2, 3), false},
		"includes every write of the head":                      {forked, at(e3, 99), true},
		"excludes an abandoned epoch":                           {abandoned, at(e2, 4), false},
		"excludes points below an abandoned epoch":              {abandoned, at(e1, 3), false},
		"includes points on the path around an abandoned epoch": {abandoned, at(e1, 2), true},
		"excludes an epoch with the same number and another id": {forked, at(lineage.Epoch{Number: 2, ID: "impostor"}, 4), false},
		"excludes an unknown epoch":                             {forked, at(lineage.Epoch{Number: 9, ID: "nine"}, 1), false},
		"excludes the empty point":                              {forked, lineage.Point{}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tt.lineage.Contains(tt.point); got != tt.want {
				t.Errorf("Contains(%v) = %t, want %t", tt.point, got, tt.want)
			}
		})
	}
}

func TestAReplicaStandsToALineage(t *testing.T) {
	tests := map[string]struct {
		points []lineage.Point
		dirty  bool
		end    lineage.Point
		want   lineage.Relation
		common lineage.Point
	}{
		"empty without snapshots":                     {want: lineage.Empty},
		"in line at the head":                         {points: []lineage.Point{at(e2, 5), at(e3, 6)}, want: lineage.InLine, common: at(e3, 6)},
		"in line though behind":                       {points: []lineage.Point{at(e1, 2)}, want: lineage.InLine, common: at(e1, 2)},
		"diverged with an unsent tip":                 {points: []lineage.Point{at(e1, 3), at(e1, 4)}, want: lineage.Diverged, common: at(e1, 3)},
		"diverged with unsnapshotted writes":          {points: []lineage.Point{at(e1, 3)}, dirty: true, want: lineage.Diverged, common: at(e1, 3)},
		"diverged beyond the end of a released epoch": {points: []lineage.Point{at(e2, 4), at(e2, 5)}, end: at(e2, 4), want: lineage.Diverged, common: at(e2, 4)},
		"unrelated without a common point":            {points: []lineage.Point{at(e1, 4)}, want: lineage.Unrelated},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, common := forked.Relate(tt.points, tt.dirty, tt.end)
			if got != tt.want || common != tt.common {
				t.Errorf("Relate() = %v at %v, want %v at %v", got, common, tt.want, tt.common)
			}
		})
	}
}

func TestAnEmptyLineageHasNoHeadAndContainsNothing(t *testing.T) {
	var none lineage.Lineage
	if head := none.Head(); !head.IsZero() || none.Contains(at(e1, 1)) {
		t.Errorf("the head is %v, Contains(%v) = %t", head, at(e1, 1), none.Contains(at(e1, 1)))
	}
}

func TestTheZeroPointLiesInNoLineage(t *testing.T) {
	if forked.Contains(lineage.Point{}) || (lineage.Lineage{{}}).Contains(lineage.Point{}) {
		t.Error("a lineage contains the zero point")
	}
}

func TestTheNextEpochIsAboveEveryNumberHeardOf(t *testing.T) {
	if diff := cmp.Diff(lineage.Epoch{Number: 8, ID: "fresh"}, lineage.Next("fresh", 3, 7, 2)); diff != "" {
		t.Errorf("Next() mismatch (-want +got):\n%s", diff)
	}
}

func TestALineageForgetsTheOldestEpochsAndNothingElse(t *testing.T) {
	var l lineage.Lineage
	for n := uint64(1); n <= lineage.MaxBranches+5; n++ {
		b := lineage.Branch{Epoch: lineage.Epoch{Number: n, ID: "x"}}
		if n > 1 {
			b.From = at(l.Head(), n-1)
		}
		l = l.Extend(b)
	}
	if len(l) != lineage.MaxBranches || l.Head().Number != lineage.MaxBranches+5 {
		t.Fatalf("kept %d epochs up to %v", len(l), l.Head())
	}
	_, fifth := l.Branch(lineage.Epoch{Number: 5, ID: "x"})
	_, sixth := l.Branch(lineage.Epoch{Number: 6, ID: "x"})
	if fifth || !sixth {
		t.Error("the wrong epochs were forgotten")
	}
}

// A pod may fail to begin again and again, each time in an epoch of its own. What was written before counts for ever.
func TestALineageForgetsEpochsInWhichNothingWasWrittenBeforeAllOthers(t *testing.T) {
	epoch := func(n uint64) lineage.Epoch { return lineage.Epoch{Number: n, ID: "x"} }
	l := lineage.Lineage{{Epoch: epoch(1)}}.Extend(lineage.Branch{Epoch: epoch(2), From: at(epoch(1), 1)})
	for n := uint64(3); n < 10*lineage.MaxBranches; n++ {
		l = l.Extend(lineage.Branch{Epoch: epoch(n), From: at(epoch(2), 4)})
		if !l.Contains(at(epoch(2), 4)) || !l.Contains(at(epoch(1), 1)) || l.Contains(at(epoch(2), 5)) {
			t.Fatalf("in epoch %d the lineage is %v", n, l)
		}
		if _, known := l.Branch(epoch(n - 1)); !known || len(l) > lineage.MaxBranches {
			t.Fatalf("epoch %d, before the head, is known: %t; %d epochs", n-1, known, len(l))
		}
	}
}

// The API refuses a record whose lineage does not have the epoch before its own.
func TestALineageNeverForgetsTheEpochBeforeItsHead(t *testing.T) {
	epoch := func(n uint64) lineage.Epoch { return lineage.Epoch{Number: n, ID: "x"} }
	l := lineage.Lineage{{Epoch: epoch(1)}}
	for n := uint64(2); n <= lineage.MaxBranches; n++ {
		l = l.Extend(lineage.Branch{Epoch: epoch(n), From: at(epoch(n-1), n)})
	}
	l = l.Extend(lineage.Branch{Epoch: epoch(100), From: at(epoch(lineage.MaxBranches-1), 99)})
	_, before := l.Branch(epoch(lineage.MaxBranches))
	_, oldest := l.Branch(epoch(1))
	if !before || oldest || len(l) != lineage.MaxBranches {
		t.Errorf("the epoch before the head is known: %t, the oldest: %t, of %d", before, oldest, len(l))
	}
}

func TestExtendingLeavesTheOldLineageAlone(t *testing.T) {
	base := forked[:2:3]
	a, b := base.Extend(lineage.Branch{Epoch: e3, From: at(e2, 4)}), base.Extend(lineage.Branch{Epoch: e3, From: at(e2, 5)})
	if a[2] == b[2] {
		t.Error("two extensions share memory")
	}
}

func TestTheEpochAfterAnotherIsTheNextOpened(t *testing.T) {
	b, ok := forked.After(e1)
	if !ok || b.Epoch != e2 {
		t.Errorf("After(%v) = %v, %t", e1, b, ok)
	}
	if _, ok := forked.After(e3); ok {
		t.Error("something came after the head")
	}
}

func TestTheNewestCommonPoint(t *testing.T) {
	a := []lineage.Point{at(e1, 1), at(e1, 2), at(e1, 3)}
	b := []lineage.Point{at(e1, 2), at(e2, 3)}
	if got := lineage.Common(a, b); got != at(e1, 2) {
		t.Errorf("Common() = %v, want %v", got, at(e1, 2))
	}
}

// TestContainsAgreesWithFollowingParents compares the walk with the plain
// definition: a point is in the lineage if stepping from the newest point to its
// parent, again and again, arrives there.
func TestContainsAgreesWithFollowingParents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parent := map[lineage.Point]lineage.Point{}
		var l lineage.Lineage
		var all []lineage.Point
		var tip lineage.Point
		for n := uint64(1); n <= uint64(rapid.IntRange(1, 6).Draw(t, "epochs")); n++ {
			from := lineage.Point{}
			if len(all) > 0 {
				from = rapid.SampledFrom(path(parent, tip)).Draw(t, "from")
			}
			e := lineage.Epoch{Number: n, ID: "x"}
			l = l.Extend(lineage.Branch{Epoch: e, From: from})
			tip = from
			for k := rapid.IntRange(0, 3).Draw(t, "snapshots"); k > 0 || len(all) == 0; k-- {
				p := at(e, tip.Seq+1)
				parent[p], tip = tip, p
				all = append(all, p)
			}
		}
		in := map[lineage.Point]bool{}
		for _, p := range path(parent, tip) {
			in[p] = true
		}
		for _, p := range all {
			if got := l.Contains(p); got != in[p] {
				t.Fatalf("Contains(%v) = %t, want %t in %v", p, got, in[p], l)
			}
		}
	})
}

func path(parent map[lineage.Point]lineage.Point, tip lineage.Point) (out []lineage.Point) {
	for ; !tip.IsZero(); tip = parent[tip] {
		out = append(out, tip)
	}
	return out
}

func TestAHistoryIsCutAfterAnEpoch(t *testing.T) {
	for e, want := range map[lineage.Epoch]lineage.Epoch{e1: e1, e2: e2, e3: e3, {Number: 2, ID: "another"}: e3} {
		if got := forked.Until(e).Head(); got != want {
			t.Errorf("the history until %v ends with %v", e, got)
		}
	}
	if longer := append(forked.Until(e1), lineage.Branch{Epoch: e3}); longer.Head() != e3 || forked[1].Epoch != e2 {
		t.Errorf("what is added to the part changes the whole: %v", forked)
	}
}

func TestNoEpochAndNoPointAreCalledNone(t *testing.T) {
	e := lineage.Epoch{Number: 2, ID: "two"}
	for want, got := range map[string]string{
		"none": lineage.Epoch{}.String(), "2/two": e.String(), "3@2/two": lineage.Point{Epoch: e, Seq: 3}.String(),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if s := (lineage.Point{}).String(); s != "none" || e.IsZero() || !(lineage.Epoch{}).IsZero() {
		t.Errorf("no point is called %q", s)
	}
}
