// Package conformance has the tests that every provisioner of shared disks passes. Each of them
// plays nodes "a", "b" and "c" that share one disk, and judges by what the disk accepts.
package conformance

import (
	"context"
	"errors"
	"testing"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/shared"
)

// World is a disk that can be attached to two nodes at once, and three nodes. At first it is attached
// to none of them.
type World struct {
	Disk shared.Disk
	// Node returns the provisioner of a node. Attach ends by itself, soon.
	Node func(name string) shared.Disks
	// Settled waits until no attach or detach is under way.
	Settled func()
	// Open opens the device on a node, as a mount does. Write writes one block through to the
	// target. Buffer writes one that stays in the node's pages, and close closes the device.
	Open func(node string) Device
	// WriteBack lets a node's kernel write its pages.
	WriteBack func(node string) error
	// Relogin ends a node's session, which begins anew at once, and Restart is a loss of power of
	// the target.
	Relogin func(node string)
	Restart func()
	// Written returns the blocks that the target executed, in order.
	Written func() []string
	// Misplace puts another device in the disk's place.
	Misplace func()
}

// Device is an open device.
type Device struct {
	Write  func(block string) error
	Buffer func(block string)
	Close  func()
}

// Run runs the tests. world makes a new one for each.
func Run(t *testing.T, world func(t *testing.T) *World) {
	for name, test := range map[string]func(*testing.T, *fixture){
		"a disk is attached and detached, and again":                    attaches,
		"an attach beyond the shares fails and is cleaned up":           exceeds,
		"a disk without a reservation has no holder":                    blank,
		"the holder writes and no other node does":                      excludes,
		"a reservation is taken from exactly the key that was seen":     expects,
		"a session that is not registered reserves nothing":             unregistered,
		"a call that is repeated changes nothing":                       repeats,
		"a node that logs in anew is a stranger":                        stranger,
		"a node takes its reservation back for a new session":           regains,
		"a holder that registers another key keeps the reservation":     rekeys,
		"a node with the device open registers only for its own mount":  opener,
		"pages of an earlier epoch do not reach the disk under a key":   pages,
		"a device that is open is not flushed, nor detached":            busy,
		"a flush after a refused write fails":                           refused,
		"a loss of power of the target does as the capabilities say":    restarts,
		"a cleared disk has neither holder nor registrations":           clears,
		"a device of another identity is not used":                      misplaced,
		"a context that has ended is returned":                          ended,
		"of two nodes that take the reservation at once one succeeds":   races,
		"a provisioner names the types of reservations that it can use": capable,
	} {
		t.Run(name, func(t *testing.T) { test(t, &fixture{World: world(t), t: t}) })
	}
}

type fixture struct {
	*World
	t *testing.T
}

// key of a node in the epoch of a number.
func key(node string, number uint64) ownership.RawKey {
	return ownership.Key{Node: node, Epoch: lineage.Epoch{Number: number, ID: "id"}}.Raw()
}

func (f *fixture) ok(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) is(err, want error) {
	f.t.Helper()
	if !errors.Is(err, want) {
		f.t.Errorf("got %v, want %v", err, want)
	}
}

func (f *fixture) attach(nodes ...string) {
	f.t.Helper()
	for _, n := range nodes {
		f.ok(f.Node(n).Attach(f.t.Context(), f.Disk))
		f.Settled()
		f.looks(n, ownership.Disk{Link: ownership.Attached, Holder: f.look(n).Holder})
	}
}

func (f *fixture) look(node string) shared.View {
	f.t.Helper()
	v, err := f.Node(node).Look(f.t.Context(), f.Disk)
	f.ok(err)
	if (v.Link == ownership.Attached) != (v.Content.Source != "") {
		f.t.Errorf("node %s sees the disk %v, with the device %q", node, v.Link, v.Content.Source)
	}
	return v
}

func (f *fixture) looks(node string, want ownership.Disk) {
	f.t.Helper()
	if v := f.look(node); v.Disk != want {
		f.t.Errorf("node %s sees %+v, want %+v", node, v.Disk, want)
	}
}

// take registers a node and takes the reservation from a holder.
func (f *fixture) take(node string, expect, k ownership.RawKey) {
	f.t.Helper()
	f.ok(f.Node(node).Register(f.t.Context(), f.Disk, k, shared.Idle))
	f.ok(f.Node(node).Reserve(f.t.Context(), f.Disk, expect, k))
	f.looks(node, ownership.Disk{Link: ownership.Attached, Registered: k, Holder: k, Holding: true})
}

// write writes a block on a node and tells whether the disk took it.
func (f *fixture) write(node, block string) bool {
	f.t.Helper()
	d := f.Open(node)
	defer d.Close()
	return d.Write(block) == nil
}

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

func (f *fixture) wrote(want ...string) {
	f.t.Helper()
	got := f.Written()
	if len(got) != len(want) {
		f.t.Fatalf("the disk executed %v, want %v", got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			f.t.Fatalf("the disk executed %v, want %v", got, want)
		}
	}
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
	f.looks("a", ownership.Disk{Link: ownership.Attached, Holder: key("a", 1)})
	if f.write("a", "1") {
		t.Error("a session that is not registered writes")
	}
	f.wrote()
}

func regains(t *testing.T, f *fixture) {
	f.attach("a")
	f.take("a", 0, key("a", 1))
	d := f.Open("a")
	defer d.Close()
	f.Relogin("a")
	f.ok(f.Node("a").Register(t.Context(), f.Disk, key("a", 1), shared.OwnMount))
	f.looks("a", ownership.Disk{Link: ownership.Attached, Registered: key("a", 1), Holder: key("a", 1)})
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
	f.take("b", key("a", 1), key("b", 2))
	if !f.write("b", "new") {
		t.Error("the holder is refused")
	}
	f.take("a", key("b", 2), key("a", 3))
	f.ok(f.WriteBack("a"))
	f.wrote("new")
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

func clears(t *testing.T, f *fixture) {
	f.attach("a")
	f.take("a", 0, key("a", 1))
	for range 2 {
		f.ok(f.Node("a").Clear(t.Context(), f.Disk))
		f.looks("a", ownership.Disk{Link: ownership.Attached})
	}
	f.take("a", 0, key("a", 2))
}

func misplaced(t *testing.T, f *fixture) {
	f.attach("a")
	f.take("a", 0, key("a", 1))
	f.Misplace()
	v, err := f.Node("a").Look(t.Context(), f.Disk)
	f.is(err, provision.ErrConflict)
	if v != (shared.View{}) {
		t.Errorf("seen with the error: %+v", v)
	}
	f.is(f.Node("a").Register(t.Context(), f.Disk, key("a", 2), shared.Idle), provision.ErrConflict)
	f.is(f.Node("a").Reserve(t.Context(), f.Disk, key("a", 1), key("a", 2)), provision.ErrConflict)
	f.is(f.Node("a").Flush(t.Context(), f.Disk), provision.ErrConflict)
	f.is(f.Node("a").Clear(t.Context(), f.Disk), provision.ErrConflict)
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
		f.ok(f.Node("a").Clear(t.Context(), f.Disk))
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
