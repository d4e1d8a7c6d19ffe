// Package rules holds the tests of what the API server refuses: the schemas'
// rules, state by state, and the agents' admission policies, request by request.
// There is nothing in it to import.
package rules
