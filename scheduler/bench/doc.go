// Command bench measures berth-scheduler against kube-scheduler, with published
// capacity and with an extender, and writes docs/benchmarks/scheduling.md and its
// chart.
//
// etcd, the API server and the schedulers are real and processes of their own.
// Nodes are objects; their agents, and the provisioner, are simulated in this
// process and answer at once, the same for every scheduler. One scheduler runs at a
// time. Every round measures all that are compared, so that a disturbance of the
// machine disturbs all alike, and ratios are of one round.
package main
