// Package leave tests that Berth can be installed, changed, uninstalled and installed again, and
// what stays of it: it runs the commands of docs/leave.md on a real API server, with Helm. It also
// runs those of docs/tutorial.md, and does there what controllers and kubelets would do.
//
// The API server has no nodes, so that no program of Berth runs: the tests show what becomes of
// objects. The tests need Helm, and run with the build tag helm: `make test-leave`.
package leave
