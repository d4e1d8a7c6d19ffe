// Package apitest gives tests a real API server with Berth's objects, their
// rules and the admission policies, installed from the chart's files.
//
// A package that uses it says so once,
//
//	func TestMain(m *testing.M) { apitest.Main(m) }
//
// and each test calls Start. The first call starts etcd and the API server, all
// others share them, so a test names its objects after itself and never assumes
// that there are no others. No controller runs: nothing is garbage-collected,
// scheduled or bound unless the test does it.
//
// The programs come from the directory in KUBEBUILDER_ASSETS. Without it the
// tests fail; they are never skipped, because a rule that was not tried is not
// known to hold.
package apitest
