// Package release takes official Kubernetes binaries from a directory or a web
// server instead of building them.
//
// Beside every binary NAME there must be NAME.sha256 or NAME.sha512, as the
// Kubernetes project publishes them. A binary is used only if it matches;
// a binary without a checksum is refused.
package release
