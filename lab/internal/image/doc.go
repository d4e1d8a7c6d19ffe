// Package image makes container images without a container engine: OCI image
// archives from files and root filesystem tars.
//
// Archives are deterministic. The same input gives the same bytes on every
// machine and day, so that the digest tells whether a node has an image.
// Layers are not compressed: the archives travel over a local pipe to guests
// whose processors are emulated, where unpacking costs more than copying.
package image
