// Package authority makes certificates for tests: an authority of its own for each
// test, and what it signs, written to files as a Secret's mount has them.
package authority
