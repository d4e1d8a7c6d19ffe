package shell

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// replays is how often a schedule that failed is played again, at most, to make it smaller.
const replays = 400

// shrinker makes a schedule that failed smaller, as long as it breaks the same promise.
type shrinker struct {
	t       *testing.T
	seed    uint64
	mistake *mistake
	class   string
	plays   int
	// best is the smallest plan so far.
	best plan
}

// shrunk tells the smallest schedule that breaks the promise that a world broke.
func shrunk(t *testing.T, w *world) string {
	t.Helper()
	s := shrink(t, w)
	s.best.told = plainly
	last := play(t, s.seed, s.best, s.mistake)
	return fmt.Sprintf("schedule %d, after %v: %s\n\nIt is the same with these faults alone (%d schedules were tried):\n%s\n%s",
		w.seed, w.broke.Round(time.Millisecond), w.broken(), s.plays, s.best.String(), last.tale)
}

func shrink(t *testing.T, w *world) *shrinker {
	t.Helper()
	s := &shrinker{t: t, seed: w.seed, mistake: w.mistake, class: w.class(), best: w.plan}
	s.best.told = untold
	exact := s.best
	exact.exact, exact.strikes = true, w.singles.hit
	s.fails(exact)
	for size := -1; size != s.size(); {
		size = s.size()
		s.earlier(w)
		s.fewer()
		s.smaller()
	}
	s.plainer()
	return s
}

// fails plays a plan, and keeps it if it breaks the same promise.
func (s *shrinker) fails(p plan) bool {
	if s.plays >= replays {
		return false
	}
	s.plays++
	if w := play(s.t, s.seed, p, s.mistake); w.class() != s.class {
		return false
	}
	s.best = p
	return true
}

func (s *shrinker) size() int {
	p := &s.best
	return len(p.events) + len(p.strikes) + p.nodes + p.volumes + p.controllers + int(p.until/time.Second)
}

// earlier ends the faults when the promise is broken.
func (s *shrinker) earlier(w *world) {
	p := s.best
	p.until = min(w.broke+time.Second, p.ends())
	p.events = slices.DeleteFunc(slices.Clone(p.events), func(e event) bool { return e.at > p.until })
	s.fails(p)
}

// fewer leaves faults out.
func (s *shrinker) fewer() {
	without(s.best.events, func(events []event) bool {
		p := s.best
		p.events, p.until = events, p.ends()
		return s.fails(p)
	})
	without(s.best.strikes, func(strikes []strike) bool {
		p := s.best
		p.strikes = strikes
		return s.best.exact && s.fails(p)
	})
}

// without removes the elements without which fails still says yes: the whole list first, then halves, down to single ones.
func without[T any](all []T, fails func([]T) bool) {
	for size := len(all); size >= 1; size /= 2 {
		for from := 0; from+size <= len(all); {
			if less := slices.Concat(all[:from], all[from+size:]); fails(less) {
				all = less
			} else {
				from += size
			}
		}
	}
}

// smaller leaves out nodes, volumes and controllers.
func (s *shrinker) smaller() {
	for _, less := range []func(p *plan){
		func(p *plan) { p.volumes-- },
		func(p *plan) { p.nodes-- },
		func(p *plan) { p.nodes-- },
		func(p *plan) { p.controllers-- },
	} {
		p := s.best
		p.events = slices.Clone(p.events)
		if less(&p); p.volumes < 1 || p.nodes < 2 || p.controllers < 1 {
			continue
		}
		p.shares = min(p.shares, p.nodes)
		for i := range p.events {
			e := &p.events[i]
			e.node, e.volume = min(e.node, p.nodes-1), min(e.volume, p.volumes-1)
		}
		s.fails(p)
	}
}

// plainer lets faults begin sooner and at full seconds, and last for a shorter time.
func (s *shrinker) plainer() {
	for i := range s.best.events {
		for _, change := range []func(e *event){
			func(e *event) { e.at = warm + (e.at-warm)/2 },
			// Not at a full second: the cluster takes its steps then, and which comes first is not told.
			func(e *event) { e.at = max(warm, e.at.Round(time.Second)) + time.Duration(i+1)*time.Millisecond },
			func(e *event) { e.lasts /= 2 },
			func(e *event) { e.lasts = max(time.Second, e.lasts.Round(time.Second)) },
		} {
			p := s.best
			p.events = slices.Clone(p.events)
			change(&p.events[i])
			s.fails(p)
		}
	}
	p := s.best
	p.until = 0
	s.fails(p)
}

// TestAScheduleThatFailsShrinksToAStory lets a mistake be made that needs more than the calm of a cluster to show.
func TestAScheduleThatFailsShrinksToAStory(t *testing.T) {
	x := named(t, "flush-error")
	for n := range *attempts {
		seed := (x.seen + n) % *attempts
		w := play(t, seed, planOf(seed), x)
		if w.broken() == "" {
			continue
		}
		s := shrink(t, w)
		p := s.best
		if before, after := len(w.plan.events)+len(w.singles.hit), len(p.events)+len(p.strikes); after > 3 {
			t.Errorf("%d faults of %d are left:\n%s", after, before, p.String())
		}
		p.told = plainly
		one, two := play(t, seed, p, x), play(t, seed, p, x)
		if one.class() != w.class() {
			t.Errorf("the shrunk schedule breaks another promise: %q, and not %q", one.broken(), w.broken())
		}
		told := one.tale.String()
		if told != two.tale.String() {
			t.Errorf("the schedule does not repeat:\n%s\n\n%s", told, two.tale)
		}
		for _, says := range []string{"mounts v1", "writes the record of v1", "BROKEN"} {
			if !strings.Contains(told, says) {
				t.Errorf("the story does not say %q", says)
			}
		}
		t.Logf("%d schedules\n%s\n%s", s.plays, p.String(), told)
		return
	}
	t.Errorf("%d schedules show nothing wrong with: %s", *attempts, x.thought)
}

func named(t *testing.T, name string) *mistake {
	t.Helper()
	i := slices.IndexFunc(planted, func(x mistake) bool { return x.name == name })
	if i < 0 {
		t.Fatalf("no mistake is called %q", name)
	}
	return &planted[i]
}
