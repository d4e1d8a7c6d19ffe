package faultydisk

import (
	"slices"
	"strconv"
	"strings"

	"berth.dev/berth/internal/provision/blockdev/faultydisk/writelog"
)

// SectorSize is the unit of the device mapper.
const SectorSize = 512

// Moment is one at which the power fails: before an entry of the log, in a step.
type Moment struct{ Entry, Step int }

// mark begins the marks in a log that say which step begins.
const mark = "step-"

// Moments are those before all the entries that matter, from the first step on. The last
// one is at the end of the log.
func Moments(entries []writelog.Entry, matters func(n int, e writelog.Entry) bool) (all []Moment) {
	step := -1
	for n, e := range entries {
		if text, found := strings.CutPrefix(e.Mark, mark); found {
			step, _ = strconv.Atoi(text)
		}
		if step >= 0 && (matters(n, e) || n == len(entries)-1) {
			all = append(all, Moment{n, step})
		}
	}
	return all
}

// EachWrite are the moments before each write.
func EachWrite(entries []writelog.Entry) []Moment {
	return Moments(entries, func(_ int, e writelog.Entry) bool { return e.Writes() })
}

// Spread are so many of the moments, or all, spread over them.
func Spread(all []Moment, most int) (some []Moment) {
	for n := range min(most, len(all)) {
		some = append(some, all[(n*(len(all)-1))/max(min(most, len(all))-1, 1)])
	}
	return slices.Compact(some)
}
