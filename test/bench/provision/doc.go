// Command provision measures how a claim becomes a running pod on the lab, and the
// cost of that, and writes docs/benchmarks/provision.md and its chart.
//
// Times come from the lab's emulated nodes, whose processors are ten to twenty times
// slower than real ones. Read them as ratios to the other rows of the same run: a pod
// without a volume, and the bare commands. Counts do not depend on the machine.
package main
