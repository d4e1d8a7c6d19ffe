package simdisk

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/shared"
)

// Config says what a target is like.
type Config struct {
	// Identity that the device shows.
	Identity provision.Identity
	// Shares is to how many nodes the disk can be attached at once.
	Shares int
	// Persistent: the reservation outlives the target's loss of power.
	Persistent bool
	// Late: after a loss of power the target knows a registration, and the reservation that goes with it, only when
	// its node logs in again, and then whatever has happened since. So does LIO with dynamic ACLs.
	Late bool
	// Known: the target knows a node's next session again, with the registration of its last one, as one does that
	// tells sessions apart by the initiator alone.
	Known bool
	// Slow: an attach stays under way until Finish ends it.
	Slow bool
	// Device: the disk's bytes are in the file "disk" of the target's directory, and an attach makes a
	// block device of it. It needs root.
	Device bool
}

// Target is a simulated shared disk.
type Target struct {
	store store
	c     Config
	// devices of the nodes; nil if an attach makes none.
	devices *loops
}

// New makes a target in memory.
func New(c Config) *Target {
	return &Target{c: c, store: &memory{state: begin(c), openers: map[string]int{}}}
}

// Open returns the target that is kept in a directory. The first process makes it; for the others
// only the parts of c count that no call changes.
func Open(dir string, c Config) (*Target, error) {
	d, t := directory(dir), &Target{store: directory(dir), c: c}
	if c.Device {
		if c.Slow {
			return nil, fmt.Errorf("%w: a device is attached at once", provision.ErrInvalid)
		}
		t.devices = &loops{file: d.path(bytesFile)}
	}
	lock, err := d.locked("making", unix.LOCK_EX)
	if err != nil {
		return nil, fmt.Errorf("locking the simulated target: %w", err)
	}
	defer lock.Close()
	if _, err := os.Stat(d.path("state")); errors.Is(err, os.ErrNotExist) {
		s := begin(c)
		if err := d.replace(&s); err != nil {
			return nil, err
		}
	} else if err != nil {
		return nil, err
	}
	return t, nil
}

func begin(c Config) state {
	return state{Identity: c.Identity, Shares: c.Shares, Persistent: c.Persistent, Late: c.Late, Known: c.Known, Slow: c.Slow, Sessions: map[string]session{}, Saved: map[string]saved{}}
}

// Node returns the disk as a node sees it. A process has one for each node that it plays.
func (t *Target) Node(name string) *Node { return &Node{t: t, name: name} }

// Log returns the writes that the target has executed, in order.
func (t *Target) Log() ([]Write, error) { return t.store.log() }

// Relogin ends the session of a node, which logs in again at once.
func (t *Target) Relogin(node string) error {
	return t.always(func(s *state) { s.relogin(node) })
}

// Restart is the target's loss of power.
func (t *Target) Restart() error { return t.always((*state).restart) }

// Finish ends a slow attach, well or not.
func (t *Target) Finish(node string, well bool) error {
	return t.always(func(s *state) { s.finish(node, well) })
}

// Plug lets a device appear on a node that has not attached it by itself.
func (t *Target) Plug(node string) error {
	return t.always(func(s *state) { s.begin(node); s.finish(node, true) })
}

// Crash ends the session of a node that lost its power. It comes back without the device.
func (t *Target) Crash(node string) error {
	return t.always(func(s *state) { s.leaves(node) })
}

// Replace puts another device in the disk's place.
func (t *Target) Replace(identity provision.Identity) error {
	return t.always(func(s *state) { s.Identity = identity })
}

func (t *Target) always(f func(*state)) error {
	return t.store.change(func(s *state) ([]Write, error) {
		f(s)
		return nil, nil
	})
}

func (t *Target) capabilities() shared.Capabilities {
	return shared.Capabilities{
		Abort: true, Persistent: t.c.Persistent, Types: []shared.Type{shared.WriteExclusive, shared.WriteExclusiveRegistrantsOnly},
	}
}

// accepts refuses a disk that several nodes write, if the target forgets who was shut out.
func (t *Target) accepts(d shared.Disk) error {
	if d.ManyWriters && !t.c.Persistent {
		return fmt.Errorf("%w: several nodes are to write volume %s, and its target forgets its reservations when it loses power, so nothing proves there "+
			"that a node was shut out: use a target that keeps them, or let one node write", provision.ErrUnsupported, d.Volume)
	}
	return nil
}

// alone makes sure that a node has the device open nowhere, until release is called.
func (t *Target) alone(node string) (release func(), err error) {
	release, err = t.store.alone(node)
	if err == nil && t.devices != nil {
		if err = t.devices.idle(node); err != nil {
			release()
			return nil, err
		}
	}
	return release, err
}
