package ledger_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/internal/ledger"
)

// unequal has a large node that is half full and a small one that is empty.
func unequal(t *testing.T) *cluster {
	t.Helper()
	c := newCluster(t, report("large", volumeGroup("vg0", 4096*gib)), report("small", volumeGroup("vg0", 64*gib)))
	c.ObserveVolume(volume("c", "large", "vg0", 2048*gib, ledger.Ready))
	return c
}

func TestEachStrategyPrefersAnotherOfUnequalNodes(t *testing.T) {
	got := map[string]map[string]int64{}
	c := unequal(t)
	for _, s := range ledger.Strategies {
		r, _ := c.Request(ledger.RequestOptions{Strategy: s}, claimed("x", 16*gib))
		got[s.Name()] = map[string]int64{"large": c.Node("large").Score(r), "small": c.Node("small").Score(r)}
	}
	want := map[string]map[string]int64{
		"Spread":        {"large": 74, "small": 47},
		"SpreadPercent": {"large": 49, "small": 75},
		"Binpack":       {"large": 51, "small": 25},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("scores (-want +got):\n%s", diff)
	}
}

func TestEachStrategyPrefersAnotherOfUnequalPoolsOfANode(t *testing.T) {
	c := newCluster(t, report("n1", volumeGroup("half", 1000*gib), volumeGroup("vacant", 100*gib), volumeGroup("tight", 90*gib)))
	c.ObserveVolume(volume("a", "n1", "half", 500*gib, ledger.Ready))
	c.ObserveVolume(volume("b", "n1", "tight", 70*gib, ledger.Ready))
	got := map[string]string{}
	for _, s := range ledger.Strategies {
		r, _ := c.Request(ledger.RequestOptions{Strategy: s}, claimed("x", 10*gib))
		choices, _ := c.Node("n1").Place(r, nil)
		got[s.Name()] = choices[0].Pool
	}
	if diff := cmp.Diff(map[string]string{"Spread": "half", "SpreadPercent": "vacant", "Binpack": "tight"}, got); diff != "" {
		t.Errorf("pools (-want +got):\n%s", diff)
	}
}

func TestMoreFreeBytesAreNeverWorseAndADoublingIsFivePoints(t *testing.T) {
	last := int64(-1)
	for left := 64 * mib; left < 1<<50; left += left / 3 {
		score := ledger.Spread.Score(left, 1<<50)
		if score < last || score > ledger.MaxScore {
			t.Fatalf("%d MiB score %d, fewer score %d", left/mib, score, last)
		}
		last = score
		if double := ledger.Spread.Score(2*left, 1<<50); double != min(score+5, ledger.MaxScore) {
			t.Errorf("%d MiB score %d, twice as many %d", left/mib, score, double)
		}
	}
}

func TestAnyScoreIsOnTheScale(t *testing.T) {
	for _, s := range ledger.Strategies {
		for _, limit := range []int64{-gib, 0, 1, 7, gib, 1 << 61} {
			for _, left := range []int64{-1 << 61, -gib, 0, 1, limit / 2, limit} {
				if score := s.Score(left, limit); score < 0 || score > ledger.MaxScore {
					t.Errorf("%s gives %d of %d the score %d", s.Name(), left, limit, score)
				}
			}
		}
	}
}

func TestAWholeDiskIsScoredByTheRequestedBytes(t *testing.T) {
	c := newCluster(t, report("n1", disk("sda", 4*gib, "", "fast")))
	for _, s := range ledger.Strategies {
		r, _ := c.Request(ledger.RequestOptions{Strategy: s}, claimed("x", 2*gib))
		if score := c.Node("n1").Score(r); score != 50 {
			t.Errorf("%s: score %d, want 50", s.Name(), score)
		}
	}
}

func TestStrategiesAreFoundByName(t *testing.T) {
	for name, want := range map[string]ledger.Strategy{
		"": ledger.Spread, "spread": ledger.Spread, "spreadPercent": ledger.SpreadPercent, "Binpack": ledger.Binpack, "random": nil,
	} {
		if got, found := ledger.StrategyNamed(name); got != want || found != (want != nil) {
			t.Errorf("%q is %v", name, got)
		}
	}
	if !slices.Contains(ledger.Strategies, ledger.Spread) {
		t.Error("the default is none of them")
	}
}

func TestAPoolThatIsNotCountedInBytesIsScoredByItsFreeShare(t *testing.T) {
	for _, s := range ledger.Strategies[:2] {
		if score := s.Score(6, 8); score != 75 {
			t.Errorf("%s gives 6 free slots of 8 the score %d", s.Name(), score)
		}
	}
}

func TestAPoolThatMayNotBeUsedAtAllRanksAsEmpty(t *testing.T) {
	for _, limit := range []int64{0, -gib} {
		if rank := ledger.SpreadPercent.Rank(-gib, limit); rank != 0 {
			t.Errorf("with a limit of %d it ranks %d", limit, rank)
		}
	}
}
