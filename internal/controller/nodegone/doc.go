// Package nodegone releases the claims of nodes that were deleted, where their PoolClass says so
// (onNodeGone: ReleaseClaims). The owner of a claim can then make another one on another node.
//
// Package gone decides, one step at a time; this package gathers the facts and carries the step
// out. Each step is a compare-and-swap with the objects that decided it, which are read live. The
// next step follows from the objects alone: if a process is killed between two steps, the next
// process goes on from there.
package nodegone
