// Command provision measures how a claim becomes a running pod on the lab, and
// what that costs, and writes docs/benchmarks/provision.md and its chart.
//
// Times come from the lab's emulated nodes, on which work of the processor is
// ten to twenty times slower than on real ones: read them as ratios to the rows
// measured beside them in the same run, a pod without a volume and the bare
// commands. Counts do not depend on the machine.
package main
