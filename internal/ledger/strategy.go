package ledger

import (
	"math/bits"
	"strings"
)

// Strategy says which of several fitting pools, and nodes, is better. It does not say
// what fits. Implementations are values without state.
type Strategy interface {
	// Name in configurations.
	Name() string
	// Rank orders the pools of a node by the room that would be left below their
	// limit: the highest is taken.
	Rank(left, limit int64) int64
	// Score puts a pool, and with it its node, on the scale from 0 to MaxScore.
	Score(left, limit int64) int64
}

// The strategies.
var (
	// Spread, the default, prefers the pool in which more bytes stay free: a large
	// pool takes many volumes before it is worse than a small one that is empty.
	Spread Strategy = spread{}
	// SpreadPercent prefers the pool of which a larger share stays free: all pools
	// fill up alike, whatever their size.
	SpreadPercent Strategy = spreadPercent{}
	// Binpack prefers the pool of which a smaller share stays free.
	Binpack Strategy = binpack{}
)

// Strategies are all of them, the default first.
var Strategies = []Strategy{Spread, SpreadPercent, Binpack}

// StrategyNamed returns the strategy of a name, whatever its case; the default if the
// name is empty, and false if there is none.
func StrategyNamed(name string) (Strategy, bool) {
	for _, s := range Strategies {
		if name == "" || strings.EqualFold(name, s.Name()) {
			return s, true
		}
	}
	return nil, false
}

type spread struct{}

func (spread) Name() string { return "Spread" }

func (spread) Rank(left, _ int64) int64 { return left }

// Sizes of pools differ by orders of magnitude, so the score counts doublings:
// there are twenty from 64 MiB to 64 TiB, of five points each.
const (
	leastDoubling = 26
	doublings     = 20
)

// Score grows by the logarithm of the room that is left. A limit below 64 MiB is
// counted in other things than bytes: there the score is the share.
func (spread) Score(left, limit int64) int64 {
	if limit < 1<<leastDoubling {
		return share(left, limit)
	}
	if left < 1<<leastDoubling {
		return 0
	}
	log := bits.Len64(uint64(left)) - 1
	beyond := (left - 1<<log) >> (log - 16) // of the next doubling, in 1/65536
	return min((int64(log-leastDoubling)<<16+beyond)*MaxScore/(doublings<<16), MaxScore)
}

type spreadPercent struct{}

func (spreadPercent) Name() string { return "SpreadPercent" }

func (spreadPercent) Rank(left, limit int64) int64 {
	if limit <= 0 {
		return 0
	}
	return int64(float64(left) / float64(limit) * (1 << 40))
}

func (spreadPercent) Score(left, limit int64) int64 { return share(left, limit) }

type binpack struct{}

func (binpack) Name() string { return "Binpack" }

func (binpack) Rank(left, _ int64) int64 { return -left }

func (binpack) Score(left, limit int64) int64 { return MaxScore - share(left, limit) }
