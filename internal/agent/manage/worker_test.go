package manage

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	testingclock "k8s.io/utils/clock/testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
)

// node plays the pool daemon.
type node struct {
	mu       sync.Mutex
	asked    []string
	outcomes map[string]provision.Outcome
	err      error
}

func (n *node) Ensure(_ context.Context, w provision.PoolWish) (provision.Outcome, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked = append(n.asked, w.Pool.Name)
	return n.outcomes[w.Pool.Name], n.err
}

// take returns the wishes that were asked since the last call.
func (n *node) take() (asked []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	asked, n.asked = n.asked, nil
	return asked
}

type fixture struct {
	*Worker
	node  *node
	facts Facts
	clock *testingclock.FakePassiveClock
	told  int
}

func newFixture(classes ...v1alpha1.PoolClass) *fixture {
	f := &fixture{
		node:  &node{outcomes: map[string]provision.Outcome{}},
		facts: Facts{Classes: classes, Pools: []provision.Pool{disk("sda")}},
		clock: testingclock.NewFakePassiveClock(time.Unix(1000, 0)),
	}
	f.Worker = &Worker{
		Manager: f.node, Told: func() { f.told++ }, Clock: f.clock, Log: logr.Discard(),
		Facts: func(context.Context) (Facts, error) { return f.facts, nil },
	}
	return f
}

func (f *fixture) round(t *testing.T) {
	t.Helper()
	if err := f.Round(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// stands returns how the wishes stand, in words.
func (f *fixture) stands() (lines []string) {
	for _, s := range f.Standings() {
		lines = append(lines, strings.Join([]string{s.Class, s.Pool, string(s.Reason), string(s.Last.Reason)}, " "))
	}
	return lines
}

func TestAGroupIsAskedForBeforeItsThinPool(t *testing.T) {
	f := newFixture(class("t", 1, thin("vg0/thin", "*", 80)))
	f.node.outcomes["vg0"] = provision.Outcome{Reason: provision.PoolMade, Message: "made"}
	f.node.outcomes["vg0/thin"] = provision.Outcome{Reason: provision.PoolMade, Message: "made"}
	f.round(t)
	if diff := cmp.Diff([]string{"vg0", "vg0/thin"}, f.node.take()); diff != "" {
		t.Error(diff)
	}
	f.node.outcomes["vg0"] = provision.Outcome{Reason: provision.PoolAsAsked, Message: "as asked"}
	f.round(t)
	if diff := cmp.Diff([]string{"t vg0 AsAsked Made", "t vg0/thin Made Made"}, f.stands()); diff != "" {
		t.Error(diff)
	}
	if s := f.Standings()[0]; !s.Met() || !s.At.Equal(time.Unix(1000, 0)) || s.Last.Message != "made" {
		t.Errorf("%+v", s)
	}
}

func TestThatNothingChangedIsNotTold(t *testing.T) {
	f := newFixture(class("a", 1, group("vg0", "*")))
	f.node.outcomes["vg0"] = provision.Outcome{Reason: provision.PoolAsAsked, Message: "as asked"}
	for range 3 {
		f.round(t)
	}
	if f.told != 1 {
		t.Errorf("told %d times", f.told)
	}
	f.facts.Classes = nil
	f.round(t)
	if f.told != 2 || len(f.Standings()) != 0 {
		t.Errorf("told %d times that nothing is asked any more: %v", f.told, f.stands())
	}
}

func TestAFailedWishIsReportedAndTriedAgainEverLessOften(t *testing.T) {
	f := newFixture(class("a", 1, group("vg0", "*")))
	f.node.err = errors.New("vgcreate: exit code 5")
	var tries []int
	for second := range 400 {
		f.clock.SetTime(time.Unix(1000+int64(second), 0))
		f.round(t)
		if len(f.node.take()) > 0 {
			tries = append(tries, second)
		}
	}
	if diff := cmp.Diff([]int{0, 10, 30, 70, 150, 310}, tries); diff != "" {
		t.Error(diff)
	}
	if s := f.Standings()[0]; s.Met() || s.Reason != Failing || !strings.Contains(s.Message, "vgcreate") {
		t.Errorf("%+v", s)
	}
	f.node.err = nil
	f.node.outcomes["vg0"] = provision.Outcome{Reason: provision.PoolMade, Message: "made"}
	f.clock.SetTime(time.Unix(2000, 0))
	f.round(t)
	if diff := cmp.Diff([]string{"a vg0 Made Made"}, f.stands()); diff != "" {
		t.Error(diff)
	}
}

func TestAWishThatIsRefusedIsNotAskedFor(t *testing.T) {
	f := newFixture(class("a", 1, group("vg0", "*")))
	f.facts.Listed = []string{"vg0"}
	f.round(t)
	if asked := f.node.take(); len(asked) > 0 {
		t.Errorf("asked for %v", asked)
	}
	if diff := cmp.Diff([]string{"a vg0 Missing "}, f.stands()); diff != "" {
		t.Error(diff)
	}
}

func TestRemarksAreToldWhereTheyExplainSomething(t *testing.T) {
	contested := []v1alpha1.PoolClass{class("a", 2, group("vg0", "*")), class("w", 1, whole("a"))}
	for name, tc := range map[string]struct {
		classes []v1alpha1.PoolClass
		disk    provision.Pool
		outcome provision.Reason
		want    provision.Reason
		remark  bool
	}{
		"a remark says why the group gets no disk":   {[]v1alpha1.PoolClass{class("a", 1, group("vg0", "*"))}, disk("sda", used), provision.PoolAwaitsDisks, provision.PoolAwaitsDisks, true},
		"a disk matches two classes":                 {contested, disk("sda"), provision.PoolAsAsked, Contested, true},
		"a remark does not hide that the group grew": {contested, disk("sda"), provision.PoolGrown, provision.PoolGrown, false},
		"a foreign group gets no disk":               {contested, disk("sda"), provision.PoolForeign, provision.PoolForeign, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(tc.classes...)
			f.facts.Pools = []provision.Pool{tc.disk}
			f.node.outcomes["vg0"] = provision.Outcome{Reason: tc.outcome, Message: "so it is"}
			f.round(t)
			if s := f.Standings()[0]; s.Reason != tc.want || strings.Contains(s.Message, "disk:sda") != tc.remark {
				t.Errorf("%+v", s)
			}
		})
	}
}

func TestFactsThatCannotBeHadAreAnError(t *testing.T) {
	f := newFixture()
	f.Facts = func(context.Context) (Facts, error) { return Facts{}, errors.New("no watch") }
	if err := f.Round(t.Context()); err == nil {
		t.Error("no error")
	}
}
