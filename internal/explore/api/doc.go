// Package api has one purpose, in its tests: every write of the record that the explorer's
// schedules make is sent to a real API server, as the process that made it, and must be accepted.
// The same write by any other process, and the illegal writes of the explorer's mutants, must be
// refused. So the rules that were explored and the rules of the API agree.
//
//	go test ./internal/explore/api -schedules 1000
package api
