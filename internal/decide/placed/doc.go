// Package placed holds what a node decides alike about its replica of a Volume and about a
// Snapshot: both are objects that name the node in their spec, and whose status has an entry of
// the node.
package placed
