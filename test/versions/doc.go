// Command versions tries Berth on one minor version of Kubernetes, and writes docs/versions.md.
//
// Usage, from the repository's root:
//
//	go run ./test/versions [MINOR]
//
// MINOR is an older version that the lab can build, such as 1.36. The tests of rules, controllers, agents and
// berth-scheduler use an API server of that version. A cluster of that version, whose one node is a part of this
// machine, then installs the chart, and volumes live and die in it. The counts of the tests that passed go to a file
// below docs/versions, from which the page is made. A run with a test that fails writes nothing. Without MINOR
// the page is made anew, and nothing runs.
package main
