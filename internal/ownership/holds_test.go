package ownership_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/internal/lineage"
	. "berth.dev/berth/internal/ownership"
)

func TestAnOwnerHoldsAPointAndTwoOthersAtMost(t *testing.T) {
	hold := func(node string, seq uint64) Hold { return Hold{For: node, Point: at(e1, seq), Until: now} }
	later := func(h Hold) Hold { h.Until = now.Add(time.Hour); return h }
	all := points(e1, 1, 2, 3, 4, 5)
	for name, test := range map[string]struct {
		holds  []Hold
		more   Hold
		points []lineage.Point
		want   []Hold
	}{
		"the first":                  {nil, hold("b", 1), all, []Hold{hold("b", 1)}},
		"a third":                    {[]Hold{hold("b", 1), hold("b", 2)}, hold("b", 3), all, []Hold{hold("b", 1), hold("b", 2), hold("b", 3)}},
		"a fourth: the oldest goes":  {[]Hold{hold("b", 1), hold("b", 2), hold("b", 3)}, hold("b", 4), all, []Hold{hold("b", 2), hold("b", 3), hold("b", 4)}},
		"many: all but three go":     {[]Hold{hold("b", 4), hold("b", 1), hold("b", 3), hold("b", 2)}, hold("b", 5), all, []Hold{hold("b", 4), hold("b", 3), hold("b", 5)}},
		"an older one":               {[]Hold{hold("b", 3), hold("b", 4)}, hold("b", 1), all, []Hold{hold("b", 3), hold("b", 4), hold("b", 1)}},
		"another deadline for one":   {[]Hold{hold("b", 2), hold("b", 3), hold("b", 4)}, later(hold("b", 4)), all, []Hold{hold("b", 2), hold("b", 3), later(hold("b", 4))}},
		"those of others stay":       {[]Hold{hold("c", 1), hold("b", 1), hold("b", 2), hold("b", 3), hold("c", 2), hold("c", 3)}, hold("b", 4), all, []Hold{hold("c", 1), hold("b", 2), hold("b", 3), hold("c", 2), hold("c", 3), hold("b", 4)}},
		"others hold newer points":   {[]Hold{hold("b", 1), hold("b", 2), hold("c", 3), hold("c", 4)}, hold("b", 5), all, []Hold{hold("b", 1), hold("b", 2), hold("c", 3), hold("c", 4), hold("b", 5)}},
		"one of a point that is not": {[]Hold{hold("b", 2), hold("b", 3)}, hold("b", 4), points(e1, 3, 4), []Hold{hold("b", 3), hold("b", 4)}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, WithHold(test.holds, test.more, test.points)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
