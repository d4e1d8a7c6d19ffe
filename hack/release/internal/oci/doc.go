// Package oci makes container images and other artefacts of registries, keeps them in one
// layout on disk, and brings them to a registry. The same input gives the same digests.
package oci
