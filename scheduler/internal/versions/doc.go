// Package versions tests that every rule of the chart compiles on each Kubernetes that Berth
// promises: an API server refuses a definition or a policy with a function that it does not have.
//
// The compiler is that of Kubernetes 1.37, which knows since when each function exists. It is in
// this module because no other one imports the API server.
package versions
