package guesttest

import (
	"cmp"
	"encoding/binary"
	"slices"

	"berth.dev/berth/internal/provision/blockdev/faultydisk"
	"berth.dev/berth/internal/provision/blockdev/faultydisk/writelog"
)

// ZFS keeps four labels on a disk, two at each end. The second half of each label is a ring of
// uberblocks.
const (
	labelSize     = 256 << 10
	ringAt        = 128 << 10
	uberblockSize = 1 << 10 // at least, and they begin at multiples of it
	// Every uberblock begins with the magic, and says which group of changes it makes valid.
	uberblockMagic = 0x00bab10c
	groupAt        = 16
)

// inRing says whether there may be an uberblock at an offset of a disk of so many bytes.
func inRing(at, size int64) bool {
	end := size / labelSize * labelSize
	return (at < 2*labelSize || at >= end-2*labelSize && at < end) && at%labelSize >= ringAt
}

// group returns the last group of changes that a write makes valid; 0 if it makes none.
func group(e writelog.Entry, size int64) (last uint64) {
	for n := range len(e.Data) / uberblockSize {
		block := e.Data[n*uberblockSize:]
		if inRing(e.Offset+int64(n*uberblockSize), size) && binary.LittleEndian.Uint64(block) == uberblockMagic {
			last = max(last, binary.LittleEndian.Uint64(block[groupAt:]))
		}
	}
	return last
}

// moments returns the moments behind the first uberblock of each group of changes, and those at
// which a step was answered.
func moments(entries []writelog.Entry, size int64) []faultydisk.Moment {
	behind := map[int]bool{}
	var valid uint64
	for n, e := range entries {
		if next := group(e, size); next > valid {
			valid, behind[n+1] = next, true
		}
	}
	return faultydisk.Moments(entries, func(n int, e writelog.Entry) bool { return behind[n] || e.Mark != "" })
}

// chosen returns so many of the moments, or all. Half of them are in the middle of steps that
// take several groups, where a volume is there in parts. The others are spread.
func chosen(all []faultydisk.Moment, steps []int, most int) []faultydisk.Moment {
	var middles []faultydisk.Moment
	for _, step := range steps {
		in := slices.DeleteFunc(slices.Clone(all), func(m faultydisk.Moment) bool { return m.Step != step })
		if len(in) > 0 {
			middles = append(middles, in[len(in)/2])
		}
	}
	middles = faultydisk.Spread(middles, (most+1)/2)
	others := slices.DeleteFunc(slices.Clone(all), func(m faultydisk.Moment) bool { return slices.Contains(middles, m) })
	some := slices.Concat(middles, faultydisk.Spread(others, most-len(middles)))
	slices.SortFunc(some, func(a, b faultydisk.Moment) int { return cmp.Compare(a.Entry, b.Entry) })
	return some
}
