// Package rules tests which requests the API server refuses: by the schemas' rules,
// state by state, and by the agents' admission policies, request by request. There is
// nothing in it to import.
package rules
