// Package check tells whether Berth works in a cluster as it was installed. `helm test` asks it
// that after an installation.
package check
