// Package inventory says what is inside an artefact: the Go modules of a program as the
// program itself names them, with their licences, and the Debian packages of a root
// filesystem. It writes that as a bill of materials in the format CycloneDX.
//
// A module whose licence is not found, or not recognised, is an error: nothing is released
// whose terms are unknown.
package inventory
