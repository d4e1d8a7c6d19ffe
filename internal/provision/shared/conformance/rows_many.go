package conformance

import (
	"maps"
	"slices"
	"testing"

	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/shared"
)

// many runs a test on a disk that several nodes write. A target that forgets its reservations refuses that.
func many(test func(*testing.T, *fixture)) func(*testing.T, *fixture) {
	return func(t *testing.T, f *fixture) {
		if !f.Node("a").Capabilities().Persistent {
			refusesMany(t, f)
			return
		}
		f.Disk.ManyWriters, f.Disk.Persistent = true, true
		test(t, f)
	}
}

func refusesMany(t *testing.T, f *fixture) {
	f.attach("a")
	f.ok(f.Node("a").Register(t.Context(), f.Disk, key("a", 1), shared.Idle))
	d := f.Disk
	d.ManyWriters = true
	f.is(f.Node("a").Reserve(t.Context(), d, 0, key("a", 1)), provision.ErrUnsupported)
	f.looks("a", ownership.Disk{Link: ownership.Attached, Registered: key("a", 1)})
	f.ok(f.Node("a").Detach(t.Context(), f.Disk))
	f.Settled()
	if err := f.Node("a").Attach(t.Context(), d); err != nil {
		f.is(err, provision.ErrUnsupported)
		return
	}
	f.Settled()
	if v := f.look("a"); v.Link != ownership.AttachFailed || v.Problem == "" {
		t.Errorf("a disk that several nodes are to write is %v on a target that forgets, with the problem %q", v.Link, v.Problem)
	}
}

// alone lets f treat the disk as one that one node writes.
func (f *fixture) alone(do func()) {
	f.Disk.ManyWriters = false
	do()
	f.Disk.ManyWriters = true
}

// join registers a node, and reserves the disk if no node has.
func (f *fixture) join(node string, k ownership.RawKey) {
	f.t.Helper()
	f.ok(f.Node(node).Register(f.t.Context(), f.Disk, k, shared.Idle))
	if f.look(node).Holder == 0 {
		f.ok(f.Node(node).Reserve(f.t.Context(), f.Disk, 0, k))
	}
	f.shares(node, k, f.look(node).Holder, f.look(node).Keys...)
}

// expel shuts out the sessions that are registered under a key.
func (f *fixture) expel(node string, victim, k ownership.RawKey) {
	f.t.Helper()
	f.ok(f.Node(node).Reserve(f.t.Context(), f.Disk, victim, k))
}

// shares says how a node sees a disk that is reserved for all that are registered.
func (f *fixture) shares(node string, registered, holder ownership.RawKey, keys ...ownership.RawKey) {
	f.t.Helper()
	f.looks(node, ownership.Disk{
		Link: ownership.Attached, Registered: registered, Holder: holder, Holding: registered == holder, Registrants: true,
		Keys: slices.Sorted(slices.Values(keys)),
	})
}

// writers says which of the nodes write.
func (f *fixture) writers(want map[string]bool) {
	f.t.Helper()
	for _, node := range slices.Sorted(maps.Keys(want)) {
		if wrote := f.write(node, "of "+node); wrote != want[node] {
			f.t.Errorf("node %s writes: %v", node, wrote)
		}
	}
}

func together(_ *testing.T, f *fixture) {
	f.attach("a", "b")
	f.join("a", key("a", 1))
	f.join("b", key("b", 2))
	f.shares("a", key("a", 1), key("a", 1), key("a", 1), key("b", 2))
	f.shares("b", key("b", 2), key("a", 1), key("a", 1), key("b", 2))
	f.writers(map[string]bool{"a": true, "b": true})
	f.wrote("of a", "of b")
}

func outside(_ *testing.T, f *fixture) {
	f.attach("a", "b")
	f.join("a", key("a", 1))
	f.shares("b", 0, key("a", 1), key("a", 1))
	f.writers(map[string]bool{"a": true, "b": false})
	f.join("b", key("b", 2))
	f.writers(map[string]bool{"a": true, "b": true})
}

func shutOut(_ *testing.T, f *fixture) {
	f.attach("a", "b")
	f.join("a", key("a", 1))
	f.join("b", key("b", 2))
	f.expel("a", key("b", 2), key("a", 1))
	f.shares("a", key("a", 1), key("a", 1), key("a", 1))
	f.shares("b", 0, key("a", 1), key("a", 1))
	f.writers(map[string]bool{"a": true, "b": false})
	f.join("b", key("b", 3))
	f.writers(map[string]bool{"a": true, "b": true})
}

func inherits(_ *testing.T, f *fixture) {
	f.attach("a", "b")
	f.join("a", key("a", 1))
	f.join("b", key("b", 2))
	f.expel("b", key("a", 1), key("b", 2))
	f.shares("b", key("b", 2), key("b", 2), key("b", 2))
	f.shares("a", 0, key("b", 2), key("b", 2))
	f.writers(map[string]bool{"a": false, "b": true})
	f.join("a", key("a", 3))
	f.writers(map[string]bool{"a": true, "b": true})
}

func stalePages(_ *testing.T, f *fixture) {
	f.attach("a", "b")
	f.join("a", key("a", 1))
	f.join("b", key("b", 2))
	d := f.Open("a")
	d.Buffer("old")
	d.Close()
	early := f.Written() // a kernel may write its pages when the device is closed
	f.expel("b", key("a", 1), key("b", 2))
	f.join("a", key("a", 3))
	f.ok(f.WriteBack("a"))
	f.wrote(early...)
	f.writers(map[string]bool{"a": true, "b": true})
	f.ok(f.Node("a").Flush(f.t.Context(), f.Disk))
}

func ancient(t *testing.T, f *fixture) {
	f.attach("c")
	f.join("c", key("c", 1))
	f.ok(f.Node("c").Detach(t.Context(), f.Disk))
	f.Settled()
	f.attach("a")
	f.shares("a", 0, key("c", 1), key("c", 1))
	f.join("a", key("a", 2))
	f.shares("a", key("a", 2), key("c", 1), key("c", 1), key("a", 2))
	f.expel("a", key("c", 1), key("a", 2))
	f.shares("a", key("a", 2), key("a", 2), key("a", 2))
}

func survives(t *testing.T, f *fixture) {
	f.attach("a", "b")
	f.join("a", key("a", 1))
	f.join("b", key("b", 2))
	f.Relogin("a")
	f.shares("b", key("b", 2), key("a", 1), key("a", 1), key("b", 2))
	v := f.look("a")
	if known := v.Registered != 0; known != f.Known {
		t.Errorf("the target knows the node's next session: %v", known)
	}
	f.writers(map[string]bool{"a": f.Known || f.Lenient, "b": true})
	f.expel("b", key("a", 1), key("b", 2))
	f.writers(map[string]bool{"a": false, "b": true})
	f.shares("a", 0, key("b", 2), key("b", 2))
}

// A target that counts a node as registered, and not its session, refuses that session then. The node sees that,
// and its next registration counts.
func cleaned(t *testing.T, f *fixture) {
	f.attach("a", "b")
	f.join("b", key("b", 1))
	f.join("a", key("a", 2))
	f.Relogin("a")
	f.join("a", key("a", 3))
	if slices.Contains(f.look("b").Keys, key("a", 2)) == f.Known {
		t.Errorf("the keys are %#x, and the target knows the node's next session: %v", f.look("b").Keys, f.Known)
	}
	if !f.Known {
		f.expel("b", key("a", 2), key("b", 1))
	}
	v := f.look("a")
	if v.Registered != key("a", 3) && !f.Lenient {
		t.Errorf("the node sees %+v", v.Disk)
	}
	f.writers(map[string]bool{"a": v.Registered == key("a", 3), "b": true})
	f.join("a", key("a", 4))
	f.writers(map[string]bool{"a": true, "b": true})
}

func widens(t *testing.T, f *fixture) {
	f.attach("a", "b")
	f.alone(func() { f.take("a", 0, leftByWipe) })
	f.ok(f.Node("b").Register(t.Context(), f.Disk, key("b", 1), shared.Idle))
	keys := []ownership.RawKey{leftByWipe, key("b", 1)}
	slices.Sort(keys)
	f.looks("b", ownership.Disk{Link: ownership.Attached, Registered: key("b", 1), Holder: leftByWipe, Keys: keys})
	f.writers(map[string]bool{"b": false})
	f.expel("b", leftByWipe, key("b", 1))
	f.shares("b", key("b", 1), key("b", 1), key("b", 1))
	f.writers(map[string]bool{"a": false, "b": true})
	f.join("a", key("a", 2))
	f.writers(map[string]bool{"a": true, "b": true})
}

func widensOwn(t *testing.T, f *fixture) {
	f.attach("a", "b")
	f.alone(func() { f.take("a", 0, leftByWipe) })
	f.ok(f.Node("a").Register(t.Context(), f.Disk, key("a", 1), shared.Idle)) // it keeps the reservation
	f.looks("a", ownership.Disk{Link: ownership.Attached, Registered: key("a", 1), Holder: key("a", 1), Keys: []ownership.RawKey{key("a", 1)}})
	f.expel("a", key("a", 1), key("a", 1))
	f.shares("a", key("a", 1), key("a", 1), key("a", 1))
	f.join("b", key("b", 2))
	f.writers(map[string]bool{"a": true, "b": true})
}

func widensEarlier(t *testing.T, f *fixture) {
	f.attach("a", "b")
	f.alone(func() { f.take("a", 0, leftByWipe) })
	f.Relogin("a")
	f.ok(f.Node("a").Register(t.Context(), f.Disk, key("a", 1), shared.Idle))
	f.expel("a", f.look("a").Holder, key("a", 1))
	f.shares("a", key("a", 1), key("a", 1), key("a", 1))
	f.join("b", key("b", 2))
	f.writers(map[string]bool{"a": true, "b": true})
}

func narrows(_ *testing.T, f *fixture) {
	f.attach("a", "b")
	f.join("a", key("a", 1))
	f.join("b", key("b", 2))
	f.alone(func() {
		f.looks("a", ownership.Disk{Link: ownership.Attached, Registered: key("a", 1), Holder: key("a", 1), Registrants: true})
		f.take("a", key("a", 1), key("a", 1))
		f.writers(map[string]bool{"a": true, "b": false})
		f.take("b", key("a", 1), key("b", 3))
		f.writers(map[string]bool{"a": false, "b": true})
	})
}

func reservesFirst(t *testing.T, f *fixture) {
	f.attach("a", "b")
	f.ok(f.Node("a").Register(t.Context(), f.Disk, key("a", 1), shared.Idle))
	f.ok(f.Node("b").Register(t.Context(), f.Disk, key("b", 2), shared.Idle))
	f.expel("b", key("a", 1), key("b", 2))
	f.shares("b", key("b", 2), key("b", 2), key("b", 2))
	f.writers(map[string]bool{"a": false, "b": true})
}

func other(t *testing.T, f *fixture) {
	f.attach("c")
	f.ok(f.Node("c").Register(t.Context(), f.Disk, key("c", 1), shared.Idle))
	f.ok(f.Node("c").Detach(t.Context(), f.Disk))
	f.Settled()
	f.attach("a", "b")
	f.alone(func() { f.take("a", 0, key("a", 2)) })
	f.ok(f.Node("b").Register(t.Context(), f.Disk, key("b", 3), shared.Idle))
	f.is(f.Node("b").Reserve(t.Context(), f.Disk, key("c", 1), key("b", 3)), provision.ErrConflict)
	f.looks("b", ownership.Disk{Link: ownership.Attached, Registered: key("b", 3), Holder: key("a", 2), Keys: []ownership.RawKey{key("a", 2), key("b", 3)}})
}

func expectsMany(t *testing.T, f *fixture) {
	f.attach("a", "b")
	f.is(f.Node("a").Reserve(t.Context(), f.Disk, 0, key("a", 1)), provision.ErrConflict)
	f.join("a", key("a", 1))
	f.is(f.Node("b").Reserve(t.Context(), f.Disk, key("a", 1), key("b", 2)), provision.ErrConflict)
	f.join("b", key("b", 2))
	for _, wrong := range []ownership.RawKey{0, key("c", 1), key("b", 2)} {
		f.is(f.Node("b").Reserve(t.Context(), f.Disk, wrong, key("b", 2)), provision.ErrConflict)
	}
	f.is(f.Node("b").Reserve(t.Context(), f.Disk, key("a", 1), key("b", 3)), provision.ErrConflict)
	f.is(f.Node("b").Reserve(t.Context(), f.Disk, key("a", 1), 0), provision.ErrConflict)
	f.shares("b", key("b", 2), key("a", 1), key("a", 1), key("b", 2))
	f.writers(map[string]bool{"a": true, "b": true})
}

func repeatsMany(t *testing.T, f *fixture) {
	f.attach("a", "b")
	f.join("a", key("a", 1))
	f.join("b", key("b", 2))
	f.ok(f.Node("a").Reserve(t.Context(), f.Disk, 0, key("a", 1)))
	f.ok(f.Node("a").Reserve(t.Context(), f.Disk, key("a", 1), key("a", 1)))
	f.shares("a", key("a", 1), key("a", 1), key("a", 1), key("b", 2))
	f.expel("a", key("b", 2), key("a", 1))
	f.is(f.Node("a").Reserve(t.Context(), f.Disk, key("b", 2), key("a", 1)), provision.ErrConflict)
	f.shares("a", key("a", 1), key("a", 1), key("a", 1))
}

func unregistersMany(t *testing.T, f *fixture) {
	f.attach("a", "b")
	f.join("a", key("a", 1))
	f.join("b", key("b", 2))
	f.ok(f.Node("b").Register(t.Context(), f.Disk, 0, shared.Idle))
	f.shares("b", 0, key("a", 1), key("a", 1))
	f.writers(map[string]bool{"a": true, "b": false})
}

func duel(t *testing.T, f *fixture) {
	f.attach("a", "b")
	for number := uint64(1); number < 10; number++ {
		f.unregister("a", "b")
		keys := map[string]ownership.RawKey{"a": key("a", number), "b": key("b", number)}
		f.join("a", keys["a"])
		f.join("b", keys["b"])
		results := map[string]chan error{"a": make(chan error, 1), "b": make(chan error, 1)}
		for node, victim := range map[string]string{"a": "b", "b": "a"} {
			go func() { results[node] <- f.Node(node).Reserve(t.Context(), f.Disk, keys[victim], keys[node]) }()
		}
		a, b := <-results["a"], <-results["b"]
		if (a == nil) == (b == nil) {
			t.Fatalf("two nodes shut each other out: %v, %v", a, b)
		}
		f.writers(map[string]bool{"a": a == nil, "b": b == nil})
	}
}
