package owner_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"berth.dev/berth/internal/lineage"
)

// tended has a machine's agent tend the volume, and returns when it is to be tended again.
func (m *machine) tended(t *testing.T) (again time.Duration, err error) {
	t.Helper()
	err = m.does(func() (err error) {
		again, err = m.owner.Tend(m.c.ctx, theVolume)
		return err
	})
	return again, err
}

func TestHowSoonAVolumeIsTendedAgain(t *testing.T) {
	c := calm(t)
	a := c.machines[0]
	broken := errors.New("no filesystem")
	for _, step := range []struct {
		name  string
		do    func()
		again time.Duration
		fails bool
	}{
		{"a kubelet has not asked", func() {}, 0, false},
		{"the record cannot be read", func() { c.down = true }, 5 * time.Second, true},
		{"the record can be read again", func() { c.down = false }, 0, false},
		{"a kubelet may ask once more", func() {
			is(t, a.does(func() error {
				return a.owner.Take(c.ctx, theVolume, func(context.Context) error { return broken })
			}), broken)
		}, 30 * time.Second, false},
		{"a kubelet may ask once more, for a while", func() { c.ticks(10e9) }, 20 * time.Second, false},
		{"a kubelet has given up", func() { c.ticks(10e9); c.ticks(10e9) }, 0, false},
	} {
		step.do()
		if again, err := a.tended(t); again != step.again || (err != nil) != step.fails {
			t.Errorf("%s: tended again after %v, %v", step.name, again, err)
		}
	}
	if c.phase() != "Released a" {
		t.Errorf("the record says %s", c.phase())
	}
}

func TestANodeWhoseGuardWaitsForAnEpochDoesNotGiveItsWord(t *testing.T) {
	c := calm(t)
	a := c.machines[0]
	must(t, a.take())
	a.fenced, a.guarded = true, lineage.Epoch{Number: 9, ID: "nine"}
	if err := a.does(func() error { return a.owner.Vouch(c.ctx) }); err == nil || !a.fenced {
		t.Errorf("the word is given: %v, fenced %v", err, a.fenced)
	}
}

func TestANodeThatCannotAskItsGuardGivesNoWord(t *testing.T) {
	c := calm(t)
	a := c.machines[0]
	world := a.oddly()
	world.standing = errFault
	is(t, a.does(func() error { return a.owner.Vouch(c.ctx) }), errFault)
	if got := changing(c.effects); got != "" {
		t.Errorf("it does %s", got)
	}
}
