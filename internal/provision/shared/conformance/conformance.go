// Package conformance has the tests that every provisioner of shared disks passes. Each of them
// plays nodes "a", "b" and "c" that share one disk, and judges by what the disk accepts.
package conformance

import (
	"testing"

	"berth.dev/berth/internal/provision/shared"
)

// World is a disk that can be attached to two nodes at once, and three nodes. At first it is attached
// to none of them.
type World struct {
	Disk shared.Disk
	// Node returns the provisioner of a node. An attach ends when Settled was called.
	Node func(name string) shared.Disks
	// Settled waits until no attach or detach is under way. Where a controller attaches, it works meanwhile.
	Settled func()
	// Unattended lets time pass in which no controller works; nil where nodes attach by themselves.
	Unattended func()
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
	// Lenient: the target takes the writes of every session of the node that holds the
	// reservation, also of one that is not registered. Where several nodes write it counts a node as registered from
	// its last registration until any of them is taken away.
	Lenient bool
	// Known: the target takes a node's next session for its last one.
	Known bool
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
		"who attaches is who the capabilities say":                      declares,
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
		"a session that registers no key gives up what is its own":      unregisters,
		"a device of another identity is not used":                      misplaced,
		"a context that has ended is returned":                          ended,
		"of two nodes that take the reservation at once one succeeds":   races,
		"a provisioner names the types of reservations that it can use": capable,

		"several nodes that are registered write at once":              many(together),
		"a node that is not registered writes nothing meanwhile":       many(outside),
		"a node is shut out by its key, and the others go on":          many(shutOut),
		"the reservation goes to who shuts its holder out":             many(inherits),
		"pages of a node that was shut out do not reach the disk":      many(stalePages),
		"the registration of a session that ended is known":            many(ancient),
		"a reservation for several outlives the session of its holder": many(survives),
		"a node goes on when the key of an earlier session is removed": many(cleaned),
		"a reservation for one becomes one for several":                many(widens),
		"so it does if it was the node's own":                          many(widensOwn),
		"so it does if it was an earlier session's of the node":        many(widensEarlier),
		"a reservation for several becomes one for one":                many(narrows),
		"a node is shut out of a disk that nobody has reserved":        many(reservesFirst),
		"a reservation for one stays if its key was not the one":       many(other),
		"a key that no session has is taken from nobody":               many(expectsMany),
		"a session that asks again for what it has changes nothing":    many(repeatsMany),
		"a session is not registered that registers no key":            many(unregistersMany),
		"of two nodes that shut each other out at once one does":       many(duel),
	} {
		t.Run(name, func(t *testing.T) { test(t, &fixture{World: world(t), t: t}) })
	}
}
