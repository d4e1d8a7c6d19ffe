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
	"berth.dev/berth/internal/decide/wish"
	"berth.dev/berth/internal/provision"
)

var disks = v1alpha1.DevicePools{Paths: []string{"/dev/sd*"}}

// group is a class a that asks for volume group vg0.
func group() (c v1alpha1.PoolClass) {
	c.Name, c.Spec.LVM = "a", &v1alpha1.LVMPools{VolumeGroups: []string{"vg0"}, Create: &v1alpha1.GroupCreation{Disks: disks}}
	return c
}

// thin is a class t that asks for a thin pool with its volume group.
func thin() (c v1alpha1.PoolClass) {
	c.Name, c.Spec.LVMThin = "t", &v1alpha1.LVMThinPools{ThinPools: []string{"vg0/thin"}, Create: &v1alpha1.ThinPoolCreation{SizePercent: 80, Disks: &disks}}
	return c
}

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
	facts wish.Facts
	clock *testingclock.FakePassiveClock
	told  int
}

func newFixture(classes ...v1alpha1.PoolClass) *fixture {
	f := &fixture{
		node:  &node{outcomes: map[string]provision.Outcome{}},
		facts: wish.Facts{Classes: classes, Pools: []provision.Pool{{PoolRef: provision.PoolRef{Type: provision.Device, Name: "disk:sda"}, Paths: []string{"/dev/sda"}}}},
		clock: testingclock.NewFakePassiveClock(time.Unix(1000, 0)),
	}
	f.Worker = &Worker{
		Manager: f.node, Told: func() { f.told++ }, Clock: f.clock, Log: logr.Discard(),
		Facts: func(context.Context) (wish.Facts, error) { return f.facts, nil },
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
	f := newFixture(thin())
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
	f := newFixture(group())
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
	f := newFixture(group())
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
	if s := f.Standings()[0]; s.Met() || s.Reason != wish.Failing || !strings.Contains(s.Message, "vgcreate") {
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
	f := newFixture(group())
	f.facts.Listed = []string{"vg0"}
	f.round(t)
	if asked := f.node.take(); len(asked) > 0 {
		t.Errorf("asked for %v", asked)
	}
	if diff := cmp.Diff([]string{"a vg0 Missing "}, f.stands()); diff != "" {
		t.Error(diff)
	}
}

func TestFactsThatCannotBeHadAreAnError(t *testing.T) {
	f := newFixture()
	f.Facts = func(context.Context) (wish.Facts, error) { return wish.Facts{}, errors.New("no watch") }
	if err := f.Round(t.Context()); err == nil {
		t.Error("no error")
	}
}

func TestAPoolThatAClassOnlyNamesIsToldToTheNodeAndHasNoStanding(t *testing.T) {
	var c v1alpha1.PoolClass
	c.Name, c.Spec.Provisioner, c.Spec.Btrfs = "b", v1alpha1.ProvisionerBtrfs, &v1alpha1.BtrfsPools{Filesystems: []string{"data"}}
	f := newFixture(c)
	f.node.outcomes["btrfs:data"] = provision.Outcome{Reason: provision.PoolForeign, Message: "others made it"}
	for range 2 {
		f.round(t)
		if diff := cmp.Diff([]string{"btrfs:data"}, f.node.take()); diff != "" {
			t.Error(diff)
		}
	}
	f.node.err = errors.New("no answer")
	f.round(t)
	f.round(t)
	if diff := cmp.Diff([]string{"btrfs:data"}, f.node.take()); diff != "" {
		t.Error("it does not rest after a failure: " + diff)
	}
	if len(f.Standings()) > 0 || f.told > 0 {
		t.Errorf("it stands as %v, told %d times", f.stands(), f.told)
	}
	f.facts.Classes = nil
	f.round(t)
	f.facts.Classes = []v1alpha1.PoolClass{c}
	f.round(t)
	if diff := cmp.Diff([]string{"btrfs:data"}, f.node.take()); diff != "" {
		t.Error("a class that is back waits for an old failure: " + diff)
	}
}
