package guesttest

import (
	"encoding/binary"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/internal/provision/blockdev/faultydisk"
	"berth.dev/berth/internal/provision/blockdev/faultydisk/writelog"
)

// size is no multiple of a label's size: the last labels do not end at the end of the disk.
const size = 64<<20 + 4096

// uberblock returns a write of an uberblock into a label, between other blocks of the ring.
func uberblock(label int64, group uint64) writelog.Entry {
	data := make([]byte, 4*uberblockSize)
	binary.LittleEndian.PutUint64(data[uberblockSize:], uberblockMagic)
	binary.LittleEndian.PutUint64(data[uberblockSize+groupAt:], group)
	at := label * labelSize
	if label >= 2 {
		at = 64<<20 - (4-label)*labelSize
	}
	return writelog.Entry{Offset: at + ringAt, Data: data}
}

func TestThePowerFailsBehindTheFirstUberblockOfEachGroupAndWhenAStepWasAnswered(t *testing.T) {
	data := writelog.Entry{Offset: 1 << 20, Data: uberblock(0, 99).Data} // only looks like one
	entries := []writelog.Entry{
		uberblock(0, 7), {Mark: "step-0"},
		data, uberblock(0, 8), uberblock(1, 8), uberblock(2, 8), uberblock(3, 8),
		data, uberblock(3, 9), uberblock(0, 9), {Mark: "step-1"},
		data, uberblock(2, 10), {Mark: "step-2"},
		uberblock(1, 3), data, // an uberblock of an older group
		{Mark: "dm-log-writes-end"},
	}
	want := []faultydisk.Moment{{Entry: 1, Step: 0}, {Entry: 4, Step: 0}, {Entry: 9, Step: 0}, {Entry: 10, Step: 1}, {Entry: 13, Step: 2}, {Entry: 16, Step: 2}}
	if diff := cmp.Diff(want, moments(entries, size)); diff != "" {
		t.Error(diff)
	}
}

func TestUberblocksAreInTheSecondHalvesOfTheLabels(t *testing.T) {
	const end = 64 << 20
	for at, want := range map[int64]bool{
		0: false, ringAt - 1: false, ringAt: true, labelSize - 1: true, labelSize: false,
		labelSize + ringAt: true, 2*labelSize - 1: true, 2*labelSize + ringAt: false,
		end - 2*labelSize - 1: false, end - 2*labelSize: false, end - 2*labelSize + ringAt: true, end - 1: true, end: false, end + ringAt: false,
	} {
		if inRing(at, size) != want {
			t.Errorf("at %d: %v", at, !want)
		}
	}
}

func TestHalfOfTheMomentsAreInTheMiddleOfStepsThatTakeSeveralGroups(t *testing.T) {
	var all []faultydisk.Moment
	for n := range 40 {
		all = append(all, faultydisk.Moment{Entry: n, Step: n / 5})
	}
	for most, want := range map[int][]int{1: {7}, 2: {0, 7}, 3: {0, 7, 32}, 5: {0, 7, 17, 32, 39}, 8: {0, 7, 10, 17, 20, 29, 32, 39}} {
		var got []int
		for _, m := range chosen(all, []int{1, 3, 6}, most) {
			got = append(got, m.Entry)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d of 40: %s", most, diff)
		}
	}
	if diff := cmp.Diff(all, chosen(all, []int{1, 3, 6}, 99)); diff != "" {
		t.Errorf("all: %s", diff)
	}
}
