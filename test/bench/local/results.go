package main

import "time"

// The sides that are compared.
const (
	// bareSide starts what one would start without Berth.
	bareSide = "bare"
	// socketSide and localSide are Berth.
	socketSide = "socket"
	localSide  = "local"
)

// What is made and deleted.
const (
	create   = "create"
	snapshot = "snapshot"
	clone    = "clone"
	// deletion is of a volume that was never copied, deleteCopied of one that has a snapshot
	// and a clone, both of which stay.
	deletion       = "delete"
	deleteCopied   = "delete what was copied"
	deleteSnapshot = "delete snapshot"
)

// subject is what was measured.
type subject struct {
	// Pool is a kind of pools.
	Pool, Operation string
	AtOnce          int
}

// sample is what one side took for a subject: seconds for each operation, by round.
type sample struct {
	subject
	Side    string
	Seconds []float64
}

// processes are those that Berth started for so many operations: those that its callers waited
// for, and those that followed.
type processes struct {
	Pool, Operation   string
	Operations        int
	Started, Followed map[string]int
	// Following is what followed in seconds for each operation, by round, of those that were
	// one after the other.
	Following []float64
}

// wiping is what a volume costs that is wiped when it is deleted, in seconds by round.
type wiping struct {
	How            string
	Size           int64
	Deleted, Freed []float64
	Processes      processes
}

// idle is what a process uses that has nothing to do.
type idle struct {
	Volumes int
	// Resident bytes, and how many of them are not of files.
	Resident, Anonymous int64
	Processor, Observed time.Duration
}

// asked are the calls for statistics that were answered in a second, by round.
type asked struct {
	// Poold is "embedded" or "separate".
	Poold     string
	AtOnce    int
	PerSecond []float64
	Processes int
}

// machine is where something was measured.
type machine struct {
	Kernel, LVM, ZFS, Processor string
	Processors                  int
}

// guestResults is what was measured in the guest.
type guestResults struct {
	Machine   machine
	Samples   []sample
	Processes []processes
	Wiping    []wiping
	Idle      idle
	Stats     []asked
}

// results are all.
type results struct {
	options
	guest   guestResults
	agent   idle
	server  string
	machine machine
	load    [2]string
	took    time.Duration
}
