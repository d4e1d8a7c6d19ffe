package oracle

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"berth.dev/berth/internal/ledger"
)

var (
	sequences = flag.Int("ledger.sequences", 10_000, "how many random sequences to run")
	firstSeed = flag.Uint64("ledger.seed", 1, "the first seed")
)

// op is one step of a sequence: an act, and three numbers that choose its objects.
// Any op makes sense in any state, so that a sequence can be cut anywhere.
type op struct{ what, a, b, c byte }

// act is something that can happen.
type act func(w *world, a, b, c byte) error

func quiet(f func(*world, byte, byte, byte)) act {
	return func(w *world, a, b, c byte) error { f(w, a, b, c); return nil }
}

// usual are the acts that every sequence is made of, each as often as listed.
var usual = []act{
	quiet((*world).claimComes), quiet((*world).podComes), quiet((*world).podComes), quiet((*world).podComes), quiet((*world).podComes), quiet((*world).podComes),
	(*world).schedules, (*world).schedules, (*world).schedules, (*world).schedules,
	(*world).advances, (*world).advances, (*world).advances, (*world).advances, (*world).advances, (*world).advances,
	quiet((*world).agentWorks), quiet((*world).agentWorks), quiet((*world).agentReports), quiet((*world).agentReports),
	quiet((*world).provisions), quiet((*world).provisions), quiet((*world).publishes),
	(*world).delivers, (*world).delivers, (*world).delivers, (*world).delivers,
	(*world).delivered, (*world).delivered, (*world).delivered, (*world).delivered,
}

// unusual are the acts of which each sequence has a few kinds, but those often.
// That finds failures that need the same act three times.
var unusual = []act{
	quiet((*world).nodeGoes), quiet((*world).unpublishes), quiet((*world).volumeGoes), quiet((*world).volumeGoes), quiet((*world).leftovers),
	quiet((*world).controllerExpands), quiet((*world).replicates), quiet((*world).classChanges),
	quiet((*world).podEnds), quiet((*world).claimGoes), quiet((*world).pvGoes), quiet((*world).claimGrows), quiet((*world).stockSelects),
	quiet((*world).staticComes), quiet((*world).bindsStatic), quiet((*world).bindsForeign),
	(*world).repeats, (*world).relists, (*world).restarts, (*world).simulates,
}

// acts are all of them.
var acts = slices.Concat(usual, unusual)

// generate makes the sequence of a seed.
func generate(seed uint64) []op {
	random := rand.New(rand.NewPCG(seed, 0))
	menu := make([]int, 0, 2*len(acts))
	for i := range usual {
		menu = append(menu, i)
	}
	for len(menu) < len(usual)*8/5 {
		menu = append(menu, len(usual)+random.IntN(len(unusual)))
	}
	ops := make([]op, 40+random.IntN(60))
	for i := range ops {
		n := random.Uint64()
		ops[i] = op{byte(menu[n%uint64(len(menu))]), byte(n >> 16), byte(n >> 24), byte(n >> 32)}
	}
	return ops
}

// run plays a sequence and brings it to rest.
func run(w *world, ops []op) error {
	for i := range w.schedulers {
		if err := w.restarts(byte(i), 0, 0); err != nil {
			return err
		}
	}
	for _, o := range ops {
		if err := acts[o.what](w, o.a, o.b, o.c); err != nil {
			return err
		}
	}
	for _, s := range w.schedulers {
		if err := w.rests(s); err != nil {
			return err
		}
	}
	return nil
}

// rests lets everything arrive. Then the ledger has granted everything that fits,
// and says the same of the volumes as a ledger that starts now.
func (w *world) rests(s *scheduler) error {
	w.trace("everything comes to rest")
	if err := w.catchesUp(s, 0); err != nil {
		return err
	}
	for range 2 {
		all, _ := w.latest(reports, 0)
		changed, _ := w.latest(claims, 0)
		for _, e := range slices.Concat(changed, all) {
			if err := s.apply(e); err != nil {
				return err
			}
		}
	}
	if overdue := s.model.Overdue(); len(overdue) > 0 {
		return fmt.Errorf("there is room and nothing was set aside for %v", overdue)
	}
	fresh := newScheduler()
	if err := w.lists(fresh, 3); err != nil {
		return fmt.Errorf("after a restart: %w", err)
	}
	return sameVolumes(s, fresh)
}

// sameVolumes compares two ledgers' facts of Volumes, leaving out wishes and
// remains, which depend on when they were seen.
func sameVolumes(s, fresh *scheduler) error {
	remains := func(f Fact) bool {
		return slices.ContainsFunc([]*scheduler{s, fresh}, func(x *scheduler) bool { return x.model.remainsAt(f.Owner.ID, f.Node, f.Pool) })
	}
	settled := func(x *scheduler) []Fact {
		facts, _ := dump(x.ledger)
		return slices.DeleteFunc(facts, func(f Fact) bool {
			_, present := x.model.volumes[f.Owner.ID]
			return f.Owner.Kind != ledger.ByVolume || !present || remains(f) || x.model.wish(x.model.volumes[f.Owner.ID]) > 0
		})
	}
	if err := sameFacts(settled(fresh), settled(s)); err != nil {
		return fmt.Errorf("a ledger that restarts says something else: %w", err)
	}
	return nil
}

// shrink cuts a failing sequence down to a short one that still fails.
func shrink(ops []op, fails func([]op) bool) []op {
	for size := len(ops) / 2; size > 0; {
		cut := false
		for at := 0; at+size <= len(ops); {
			shorter := slices.Delete(slices.Clone(ops), at, at+size)
			if fails(shorter) {
				ops, cut = shorter, true
			} else {
				at += size
			}
		}
		if !cut || size > 1 {
			size /= 2
		}
	}
	return ops
}

// try runs a sequence; a panic counts as a failure.
func try(ops []op, trace func(string, ...any)) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	w := newWorld(2)
	if trace != nil {
		w.trace = trace
	}
	return run(w, ops)
}

func TestTheLedgerAgreesWithTheOracleInRandomSequencesOfEveryEvent(t *testing.T) {
	n := *sequences
	if testing.Short() {
		n = min(n, 500)
	}
	for seed := *firstSeed; seed < *firstSeed+uint64(n); seed++ {
		if n > 100_000 && seed%50_000 == 0 {
			fmt.Printf("%d of %d sequences\n", seed-*firstSeed, n)
		}
		ops := generate(seed)
		if try(ops, nil) == nil {
			continue
		}
		ops = shrink(ops, func(shorter []op) bool { return try(shorter, nil) != nil })
		var story strings.Builder
		err := try(ops, func(format string, args ...any) { fmt.Fprintf(&story, "  "+format+"\n", args...) })
		t.Fatalf("seed %d: %v\n%s", seed, err, story.String())
	}
}
