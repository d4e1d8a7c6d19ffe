// Package rounds has the results of rounds of failover, one JSON line each, and makes a page of them.
//
// In a round, one fault meets the node that writes to a shared disk. The end-to-end test plays the rounds
// on the lab, and test/takeover plays those with real processes of one machine. Both write lines;
// test/bench/failover makes docs/benchmarks/failover.md and failover-native.md of them.
package rounds
