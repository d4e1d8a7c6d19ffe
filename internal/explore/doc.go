// Package explore looks for a schedule of failures that breaks the ownership
// rules.
//
// A World is one volume in a cluster of two to four nodes: machines, their
// copies or a shared disk with reservations, agents, kubelets and pods, two
// controllers that may both believe to lead, the API server, the links between
// them, and a clock. Its processes decide with the very functions the product
// uses. Everything else is Events: a process takes one step, a stream arrives
// late or twice, a machine crashes, sleeps or loses its media, links are cut,
// the API server goes away or comes back from a backup, a pod writes.
//
// A process takes two steps for everything: it decides, and it carries out. Events
// between the two make races, lost answers and paused machines.
//
// The world knows two things that no process knows: the real content of every
// snapshot, and the writes acknowledged to the pod. Each event is checked at once
// against the invariants (truth.go, checks.go). When the events are over all faults
// end, and the world must reach its goals (settle.go).
//
//   - Random plays numbered schedules: a number always gives the same schedule.
//   - Exhaust visits every state within small bounds, each once whatever its names
//     (canon.go), and without waits that no process notices (reduce.go).
//   - Shrink leaves out the events that a schedule does not need, and a Story tells
//     the rest to a person.
//   - Mutants are plausible mistakes. Each must be caught. If one is not, the rule it
//     breaks is not needed or the world is too kind.
//
// A World is a value. Nothing that it points to is changed in place, so that
// copying the struct takes a snapshot of everything.
package explore
