// Command versions tries Berth on minor versions of Kubernetes, and writes docs/versions.md.
//
// Usage, from the repository's root:
//
//	go run ./test/versions [MINOR...]
//
// MINOR is a version that the lab can build, such as 1.36. For each, the tests of rules, controllers, agents and
// berth-scheduler use an API server of that version. A cluster of that version, whose one node is a part of this
// machine, then installs the chart, and volumes live and die in it. The counts of the tests that passed go to a file
// below docs/versions, from which the page is made. After a test that fails
// neither this file nor the page is written. Without MINOR the page is made anew, and nothing runs.
package main
