package faultydisk

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/internal/provision/blockdev/faultydisk/writelog"
)

var (
	written = writelog.Entry{Data: make([]byte, SectorSize)}
	flushed = writelog.Entry{Data: []byte{}}
)

func TestThePowerFailsBeforeEachWriteOfAStepAndAtTheEnd(t *testing.T) {
	entries := []writelog.Entry{
		written, flushed, // before anything is asked for
		{Mark: "step-0"}, written, flushed, {Offset: SectorSize, Discarded: SectorSize},
		{Mark: "step-1"}, flushed, written, {Mark: "somebody else's"}, written,
		{Mark: "step-2"},
		{Mark: "dm-log-writes-end"},
	}
	want := []Moment{{3, 0}, {5, 0}, {8, 1}, {10, 1}, {12, 2}}
	if diff := cmp.Diff(want, EachWrite(entries)); diff != "" {
		t.Error(diff)
	}
	if got := EachWrite(entries[:2]); len(got) > 0 {
		t.Errorf("before the first step it fails at %v", got)
	}
}

func TestMomentsAreSpreadOverAllOfThem(t *testing.T) {
	var all []Moment
	for n := range 10 {
		all = append(all, Moment{n, 0})
	}
	for most, want := range map[int][]int{0: nil, 1: {0}, 2: {0, 9}, 4: {0, 3, 6, 9}, 10: {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 99: {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}} {
		var got []int
		for _, m := range Spread(all, most) {
			got = append(got, m.Entry)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d of ten: %s", most, diff)
		}
	}
	if got := Spread(nil, 5); got != nil {
		t.Errorf("of none there are %v", got)
	}
}
