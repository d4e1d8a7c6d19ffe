// Package keylock is a lock per key whose waiters leave when their context ends:
// callers that retry do not pile up behind one that hangs.
package keylock
