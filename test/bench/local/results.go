package main

import "time"

// The sides that are compared.
const (
	// bareSide starts the commands that an administrator would start without Berth.
	bareSide = "bare"
	// socketSide is Berth behind poold's socket, localSide Berth in one process.
	socketSide = "socket"
	localSide  = "local"
)

// The operations.
const (
	create   = "create"
	snapshot = "snapshot"
	clone    = "clone"
	// deletion deletes a volume that was never copied, deleteCopied one that has a snapshot
	// and a clone. Snapshot and clone stay.
	deletion       = "delete"
	deleteCopied   = "delete what was copied"
	deleteSnapshot = "delete snapshot"
)

// subject names what was measured: an operation on so many volumes at once in a kind of pool.
type subject struct {
	// Pool is a kind of pool.
	Pool, Operation string
	AtOnce          int
}

// sample is the time that one side took for a subject: seconds for each operation, by round.
type sample struct {
	subject
	Side    string
	Seconds []float64
}

// processes counts the processes that Berth started for a number of operations: Started are
// those that its callers waited for, Followed those after its answers.
type processes struct {
	Pool, Operation   string
	Operations        int
	Started, Followed map[string]int
	// Following is how long the work after the answers took, in seconds for each operation, by
	// round. It covers only operations that were carried out one after the other.
	Following []float64
}

// wiping is the cost of deleting a volume that is wiped, in seconds by round.
type wiping struct {
	How            string
	Size           int64
	Deleted, Freed []float64
	Processes      processes
}

// idle is the usage of a process that has nothing to do.
type idle struct {
	Volumes int
	// Resident and Anonymous count bytes of memory. Anonymous is the part of Resident that
	// does not come from files.
	Resident, Anonymous int64
	Processor, Observed time.Duration
}

// asked counts the calls for statistics that were answered in a second, by round.
type asked struct {
	// Poold is "embedded" or "separate".
	Poold     string
	AtOnce    int
	PerSecond []float64
	Processes int
}

// machine describes the machine of a measurement.
type machine struct {
	Kernel, LVM, ZFS, Processor string
	Processors                  int
}

// guestResults are the results of the measurements in the guest.
type guestResults struct {
	Machine   machine
	Samples   []sample
	Processes []processes
	Wiping    []wiping
	Idle      idle
	Stats     []asked
}

// results are all results of a run.
type results struct {
	options
	guest   guestResults
	agent   idle
	server  string
	machine machine
	load    [2]string
	took    time.Duration
}
