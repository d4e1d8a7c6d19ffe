// Package authority makes certificates for tests. Each test has its own authority.
// The certificates are written to files, as in the mount of a Secret.
package authority
