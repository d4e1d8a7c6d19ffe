// Package simcloud is a cloud that is simulated: disks that it attaches to machines slowly, by operations of one
// machine at a time, as Azure does. Each disk is a simdisk.Target, so it judges writes by reservations and keeps
// a log of those that it accepted.
//
// Its time comes from a clock, and nothing runs in the background: each call first lets happen what was due. All
// that goes wrong at clouds can be made to happen: see faults.go. It is for tests and demonstrations.
//
// It lives in one process. Controllers that are processes of their own ask it by Serve and Dial, and its disks may be
// block devices of a directory, which the agents of nodes have by In.
package simcloud
