package stream

import (
	"testing"
	"time"

	"berth.dev/berth/internal/replicate/wire"
)

// played is how many of the last hundred frames go packed over a link and with a packer of these rates in
// MB/s, when a packed frame has the ratio of a raw one.
func played(link, pack, ratio float64) (packed int) {
	var c choice
	for n := range 400 {
		try, _ := c.next()
		f := spent{raw: wire.MaxData, wire: wire.MaxData, tried: try}
		if try {
			f.wire = int(ratio * wire.MaxData)
			f.packing = time.Duration(wire.MaxData / pack * 1000)
		}
		// The link takes eight frames at once, and then waits until they have left.
		if n%8 == 7 {
			f.leaving = time.Duration(8 * float64(f.wire) / link * 1000)
		}
		c = c.after(f)
		if try && n >= 300 {
			packed++
		}
	}
	return packed
}

func TestDataGoesPackedWhereTheLinkIsTheLimit(t *testing.T) {
	tests := map[string]struct {
		link, pack, ratio float64
		want              bool
	}{
		"a slow link and data that packs well":     {10, 500, 0.3, true},
		"1 Gbit/s and data that packs well":        {120, 800, 0.3, true},
		"a slow link and data that does not pack":  {10, 500, 1, false},
		"a fast link and data that packs well":     {3000, 800, 0.3, false},
		"10 Gbit/s and data that packs to a half":  {1200, 800, 0.5, false},
		"a slow link and a packer that is slower":  {100, 50, 0.1, false},
		"a slow link and data that packs a little": {10, 500, 0.95, false},
	}
	for name, test := range tests {
		if got := played(test.link, test.pack, test.ratio); got > 90 != test.want || !test.want && got > 3 {
			t.Errorf("%s: %d of 100 frames go packed", name, got)
		}
	}
}

func TestEachChoiceHasAReason(t *testing.T) {
	for _, c := range []choice{{}, {frames: settle}, {frames: settle + 1, tries: 1, leaving: 1, ratio: 0.1}, {frames: settle + 1, tries: 1, ratio: 1}} {
		if _, reason := c.next(); reason == "" {
			t.Errorf("%+v has no reason", c)
		}
	}
}
