package conformance

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/shared"
)

func attaches(t *testing.T, f *fixture) {
	n := f.Node("a")
	f.looks("a", ownership.Disk{})
	f.ok(n.Detach(t.Context(), f.Disk))
	for range 2 {
		f.attach("a")
		f.ok(n.Attach(t.Context(), f.Disk))
		f.Settled()
		f.looks("a", ownership.Disk{Link: ownership.Attached})
		f.ok(n.Detach(t.Context(), f.Disk))
		f.Settled()
		f.looks("a", ownership.Disk{})
	}
}

func declares(t *testing.T, f *fixture) {
	n := f.Node("a")
	if by := n.Capabilities().Attacher; (by == shared.ByController) != (f.Unattended != nil) {
		t.Errorf("the capabilities say that the attacher is %d", by)
	}
	for _, step := range []struct {
		call func(context.Context, shared.Disk) error
		end  ownership.Link
	}{{n.Attach, ownership.Attached}, {n.Detach, ownership.Detached}} {
		f.ok(step.call(t.Context(), f.Disk))
		if f.Unattended != nil {
			f.Unattended()
			f.looks("a", ownership.Disk{Link: ownership.Attaching})
		}
		f.Settled()
		f.looks("a", ownership.Disk{Link: step.end})
	}
}

func exceeds(t *testing.T, f *fixture) {
	f.attach("a", "b")
	_ = f.Node("c").Attach(t.Context(), f.Disk) // it may say so at once
	f.Settled()
	if v := f.look("c"); v.Link != ownership.AttachFailed || v.Problem == "" {
		t.Errorf("one attach too many is %v, with the problem %q", v.Link, v.Problem)
	}
	f.ok(f.Node("c").Detach(t.Context(), f.Disk))
	f.Settled()
	f.looks("c", ownership.Disk{})
	f.ok(f.Node("b").Detach(t.Context(), f.Disk))
	f.Settled()
	f.attach("c")
}

func blank(t *testing.T, f *fixture) {
	f.attach("a", "b")
	if !f.write("a", "1") || !f.write("b", "2") {
		t.Error("a disk without a reservation refuses a writer")
	}
}

func excludes(t *testing.T, f *fixture) {
	f.attach("a", "b")
	f.take("a", 0, key("a", 1))
	f.ok(f.Node("b").Register(t.Context(), f.Disk, key("b", 1), shared.Idle))
	if !f.write("a", "1") || f.write("b", "2") {
		t.Error("not the holder alone writes")
	}
	f.take("b", key("a", 1), key("b", 2))
	if f.write("a", "3") || !f.write("b", "4") {
		t.Error("not the new holder alone writes")
	}
	f.looks("a", ownership.Disk{Link: ownership.Attached, Holder: key("b", 2)})
	f.wrote("1", "4")
}

func expects(t *testing.T, f *fixture) {
	f.attach("a", "b")
	f.take("a", 0, key("a", 1))
	f.ok(f.Node("b").Register(t.Context(), f.Disk, key("b", 2), shared.Idle))
	for _, wrong := range []ownership.RawKey{0, key("b", 2), key("c", 1), key("a", 2)} {
		f.is(f.Node("b").Reserve(t.Context(), f.Disk, wrong, key("b", 2)), provision.ErrConflict)
		f.looks("a", ownership.Disk{Link: ownership.Attached, Registered: key("a", 1), Holder: key("a", 1), Holding: true})
	}
}

func unregistered(t *testing.T, f *fixture) {
	f.attach("a", "b")
	f.is(f.Node("a").Reserve(t.Context(), f.Disk, 0, key("a", 1)), provision.ErrConflict)
	f.ok(f.Node("a").Register(t.Context(), f.Disk, key("a", 1), shared.Idle))
	f.is(f.Node("a").Reserve(t.Context(), f.Disk, 0, key("a", 2)), provision.ErrConflict)
	f.is(f.Node("b").Reserve(t.Context(), f.Disk, 0, key("a", 1)), provision.ErrConflict)
	f.looks("b", ownership.Disk{Link: ownership.Attached})
}

func repeats(t *testing.T, f *fixture) {
	f.attach("a", "b")
	f.take("b", 0, key("b", 1))
	f.take("a", key("b", 1), key("a", 2))
	f.ok(f.Node("a").Reserve(t.Context(), f.Disk, key("b", 1), key("a", 2)))
	f.take("a", key("a", 2), key("a", 2))
	if !f.write("a", "1") {
		t.Error("the holder is refused")
	}
}

func stranger(t *testing.T, f *fixture) {
	f.attach("a")
	f.take("a", 0, key("a", 1))
	f.Relogin("a")
	want := ownership.Disk{Link: ownership.Attached, Holder: key("a", 1)}
	if f.Known {
		want.Registered, want.Holding = key("a", 1), true
	}
	f.looks("a", want)
	if wrote := f.write("a", "1"); wrote != (f.Lenient || f.Known) {
		t.Errorf("a session that logged in anew writes: %v, and the target is lenient: %v, and knows it: %v", wrote, f.Lenient, f.Known)
	}
}

func regains(t *testing.T, f *fixture) {
	f.attach("a")
	f.take("a", 0, key("a", 1))
	d := f.Open("a")
	defer d.Close()
	f.Relogin("a")
	f.ok(f.Node("a").Register(t.Context(), f.Disk, key("a", 1), shared.OwnMount))
	f.looks("a", ownership.Disk{Link: ownership.Attached, Registered: key("a", 1), Holder: key("a", 1), Holding: f.Known})
	f.ok(f.Node("a").Reserve(t.Context(), f.Disk, key("a", 1), key("a", 1)))
	f.ok(d.Write("1"))
	f.wrote("1")
}

func rekeys(t *testing.T, f *fixture) {
	f.attach("a", "b")
	f.take("a", 0, key("a", 1))
	f.ok(f.Node("a").Register(t.Context(), f.Disk, key("a", 2), shared.Idle))
	f.looks("a", ownership.Disk{Link: ownership.Attached, Registered: key("a", 2), Holder: key("a", 2), Holding: true})
	if f.write("b", "1") {
		t.Error("the reservation was given up meanwhile")
	}
}

func opener(t *testing.T, f *fixture) {
	f.attach("a")
	d := f.Open("a")
	f.is(f.Node("a").Register(t.Context(), f.Disk, key("a", 1), shared.Idle), provision.ErrInUse)
	f.looks("a", ownership.Disk{Link: ownership.Attached})
	f.ok(f.Node("a").Register(t.Context(), f.Disk, key("a", 1), shared.OwnMount))
	d.Close()
	f.ok(f.Node("a").Register(t.Context(), f.Disk, key("a", 2), shared.Idle))
}

func pages(t *testing.T, f *fixture) {
	f.attach("a", "b")
	f.take("a", 0, key("a", 1))
	d := f.Open("a")
	d.Buffer("old")
	d.Close()
	early := f.Written() // a kernel may write its pages when the device is closed
	f.take("b", key("a", 1), key("b", 2))
	if !f.write("b", "new") {
		t.Error("the holder is refused")
	}
	f.take("a", key("b", 2), key("a", 3))
	f.ok(f.WriteBack("a"))
	f.wrote(append(early, "new")...)
}

func busy(t *testing.T, f *fixture) {
	f.attach("a")
	f.take("a", 0, key("a", 1))
	d := f.Open("a")
	d.Buffer("1")
	f.is(f.Node("a").Flush(t.Context(), f.Disk), provision.ErrInUse)
	f.is(f.Node("a").Detach(t.Context(), f.Disk), provision.ErrInUse)
	d.Close()
	f.ok(f.Node("a").Flush(t.Context(), f.Disk))
	f.wrote("1")
	f.ok(f.Node("a").Detach(t.Context(), f.Disk))
}

func refused(t *testing.T, f *fixture) {
	f.attach("a", "b")
	f.take("a", 0, key("a", 1))
	d := f.Open("a")
	d.Buffer("1")
	d.Close()
	f.take("b", key("a", 1), key("b", 2))
	if err := f.Node("a").Flush(t.Context(), f.Disk); err == nil || errors.Is(err, provision.ErrInUse) {
		t.Errorf("a flush of pages that the disk refuses: %v", err)
	}
	if err := f.Node("a").Flush(t.Context(), f.Disk); err == nil {
		t.Error("a second flush says that the write has reached the disk")
	}
}

func restarts(t *testing.T, f *fixture) {
	f.attach("a", "b")
	f.take("a", 0, key("a", 1))
	f.Restart()
	v := f.look("b")
	if want := f.Node("a").Capabilities().Persistent; (v.Holder == key("a", 1)) != want {
		t.Errorf("after a loss of power the holder is %#x, and the capabilities say persistent: %v", uint64(v.Holder), want)
	}
	if v.Holder != 0 && f.write("b", "1") {
		t.Error("another node than the holder writes")
	}
}

func unregisters(t *testing.T, f *fixture) {
	f.attach("a", "b")
	none := ownership.RawKey(0)
	f.take("a", 0, key("a", 1))
	f.ok(f.Node("b").Register(t.Context(), f.Disk, key("b", 2), shared.Idle))
	for range 2 {
		f.ok(f.Node("b").Register(t.Context(), f.Disk, none, shared.Idle))
		f.looks("b", ownership.Disk{Link: ownership.Attached, Holder: key("a", 1)})
		f.looks("a", ownership.Disk{Link: ownership.Attached, Registered: key("a", 1), Holder: key("a", 1), Holding: true})
	}
	f.ok(f.Node("b").Register(t.Context(), f.Disk, key("b", 2), shared.Idle))
	f.ok(f.Node("a").Register(t.Context(), f.Disk, none, shared.Idle))
	f.looks("a", ownership.Disk{Link: ownership.Attached})
	f.looks("b", ownership.Disk{Link: ownership.Attached, Registered: key("b", 2)})
	f.take("b", 0, key("b", 2))
}

func misplaced(t *testing.T, f *fixture) {
	f.attach("a")
	f.take("a", 0, key("a", 1))
	f.Misplace()
	v, err := f.Node("a").Look(t.Context(), f.Disk)
	f.is(err, provision.ErrConflict)
	if !reflect.DeepEqual(v, shared.View{}) {
		t.Errorf("seen with the error: %+v", v)
	}
	f.is(f.Node("a").Register(t.Context(), f.Disk, key("a", 2), shared.Idle), provision.ErrConflict)
	f.is(f.Node("a").Reserve(t.Context(), f.Disk, key("a", 1), key("a", 2)), provision.ErrConflict)
	f.is(f.Node("a").Flush(t.Context(), f.Disk), provision.ErrConflict)
}

func ended(t *testing.T, f *fixture) {
	f.attach("a")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := f.Node("a").Look(ctx, f.Disk)
	f.is(err, context.Canceled)
	f.is(f.Node("a").Register(ctx, f.Disk, key("a", 1), shared.Idle), context.Canceled)
	f.is(f.Node("a").Detach(ctx, f.Disk), context.Canceled)
	f.looks("a", ownership.Disk{Link: ownership.Attached})
}

func races(t *testing.T, f *fixture) {
	f.attach("a", "b")
	for number := uint64(1); number < 20; number++ {
		f.unregister("a", "b")
		won := make(chan error)
		for _, node := range []string{"a", "b"} {
			f.ok(f.Node(node).Register(t.Context(), f.Disk, key(node, number), shared.Idle))
		}
		for _, node := range []string{"a", "b"} {
			go func() {
				won <- f.Node(node).Reserve(context.WithoutCancel(t.Context()), f.Disk, 0, key(node, number))
			}()
		}
		first, second := <-won, <-won
		if (first == nil) == (second == nil) {
			t.Fatalf("two nodes took a free reservation: %v, %v", first, second)
		}
		holders := 0
		for _, node := range []string{"a", "b"} {
			if f.look(node).Holding {
				holders++
			}
		}
		if holders != 1 {
			t.Fatalf("%d sessions hold the reservation", holders)
		}
	}
}

func capable(t *testing.T, f *fixture) {
	if c := f.Node("a").Capabilities(); len(c.Types) == 0 || c.Types[0] != shared.WriteExclusive {
		t.Errorf("the types of reservations are %v", c.Types)
	}
}
