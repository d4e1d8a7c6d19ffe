// Package catalog has the container images that the lab itself provides: the
// sandbox of every pod, a shell to test with, and the CSI sidecars. They are
// built here, because a cluster in the lab has no registry to pull from.
package catalog
