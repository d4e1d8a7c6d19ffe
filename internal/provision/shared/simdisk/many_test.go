package simdisk_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/shared"
	"berth.dev/berth/internal/provision/shared/simdisk"
)

func several() shared.Disk {
	d := disk
	d.ManyWriters, d.Persistent = true, true
	return d
}

func keyOf(node string, number uint64) ownership.RawKey {
	return ownership.Key{Node: node, Epoch: lineage.Epoch{Number: number, ID: "id"}}.Raw()
}

// joined registers nodes, each in epoch 1. The first one reserves the disk.
func joined(t *testing.T, target *simdisk.Target, names ...string) {
	t.Helper()
	for i, name := range names {
		n := target.Node(name)
		err := errors.Join(n.Attach(t.Context(), several()), n.Register(t.Context(), several(), keyOf(name, 1), shared.Idle))
		if i == 0 {
			err = errors.Join(err, n.Reserve(t.Context(), several(), 0, keyOf(name, 1)))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func sees(t *testing.T, n *simdisk.Node) ownership.Disk {
	t.Helper()
	v, err := n.Look(t.Context(), several())
	if err != nil {
		t.Fatal(err)
	}
	return v.Disk
}

func TestAShutOutWhoseAnswerIsLostHasHadItsEffect(t *testing.T) {
	for name, make := range map[string]func() *simdisk.Target{
		"in memory":      func() *simdisk.Target { return simdisk.New(config()) },
		"in a directory": func() *simdisk.Target { return opened(t, config()) },
	} {
		for _, done := range []bool{false, true} {
			target, lost := make(), errors.New("lost")
			joined(t, target, "a", "b")
			b := target.Node("b")
			b.Fail(func(call string, after bool) error {
				if call == "reserve" && after == done {
					return lost
				}
				return nil
			})
			if err := b.Reserve(t.Context(), several(), keyOf("a", 1), keyOf("b", 1)); !errors.Is(err, lost) {
				t.Errorf("%s: %v", name, err)
			}
			b.Fail(nil)
			if keys := sees(t, b).Keys; slices.Contains(keys, keyOf("a", 1)) == done {
				t.Errorf("%s, done %v: the keys are %#x", name, done, keys)
			}
			err := b.Reserve(t.Context(), several(), keyOf("a", 1), keyOf("b", 1))
			if done != errors.Is(err, provision.ErrConflict) || !done && err != nil {
				t.Errorf("%s, done %v: asked again: %v", name, done, err)
			}
			if d := sees(t, b); !d.Holding || !d.Registrants || !slices.Equal(d.Keys, []ownership.RawKey{keyOf("b", 1)}) {
				t.Errorf("%s, done %v: %+v", name, done, d)
			}
		}
	}
}

func TestARegistrationOutlivesWhateverEndsItsSession(t *testing.T) {
	for name, ends := range map[string]func(target *simdisk.Target) error{
		"a new login":                     func(target *simdisk.Target) error { return target.Relogin("a") },
		"the loss of the node":            func(target *simdisk.Target) error { return target.Crash("a") },
		"a detach":                        func(target *simdisk.Target) error { return target.Node("a").Detach(t.Context(), several()) },
		"a loss of power of the target":   (*simdisk.Target).Restart,
		"two losses of power of the same": func(target *simdisk.Target) error { return errors.Join(target.Restart(), target.Restart()) },
	} {
		for _, known := range []bool{false, true} {
			c := config()
			c.Known = known
			target := simdisk.New(c)
			joined(t, target, "a", "b")
			a, b := target.Node("a"), target.Node("b")
			if err := ends(target); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(a.Attach(t.Context(), several()), b.Attach(t.Context(), several())); err != nil {
				t.Fatal(err)
			}
			want, keys := ownership.RawKey(0), slices.Sorted(slices.Values([]ownership.RawKey{keyOf("a", 1), keyOf("b", 1)}))
			if known {
				want = keyOf("a", 1)
			}
			d := sees(t, a)
			if d.Registered != want || d.Holder != keyOf("a", 1) || d.Holding != known || !slices.Equal(d.Keys, keys) {
				t.Errorf("after %s, known %v, the node sees %+v", name, known, d)
			}
		}
	}
}

func TestATargetThatForgetsIsNotForSeveralNodes(t *testing.T) {
	c := config()
	c.Persistent = false
	a := simdisk.New(c).Node("a")
	for call, err := range map[string]error{"attach": a.Attach(t.Context(), several()), "reserve": a.Reserve(t.Context(), several(), 0, keyOf("a", 1))} {
		if !errors.Is(err, provision.ErrUnsupported) || !strings.Contains(err.Error(), "let one node write") {
			t.Errorf("%s: %v", call, err)
		}
	}
}

func TestALateCommandOfANodeThatWasShutOutIsNotExecuted(t *testing.T) {
	target := simdisk.New(config())
	joined(t, target, "a", "b")
	a, b := target.Node("a"), target.Node("b")
	d, err := a.Open(lineage.Epoch{Number: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	early, errEarly := d.Send("early")
	late, errLate := d.Send("late")
	if err := errors.Join(errEarly, errLate, a.Land(early), b.Reserve(t.Context(), several(), keyOf("a", 1), keyOf("b", 1))); err != nil {
		t.Fatal(err)
	}
	if err := a.Land(late); !errors.Is(err, provision.ErrConflict) {
		t.Errorf("a command of the node that was shut out: %v", err)
	}
	if log, err := target.Log(); err != nil || len(log) != 1 || log[0].Data != "early" {
		t.Errorf("executed: %v, %v", log, err)
	}
}
