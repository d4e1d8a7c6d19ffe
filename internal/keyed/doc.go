// Package keyed serialises work by key: one lock per volume, none for the rest.
// Operations that do not conflict with each other may share a key.
//
// Waiting ends with the caller's context, so that a client that gives up leaves
// the queue at once and repeated calls for one stuck volume do not pile up. The
// lock of a key exists only while a goroutine holds it or waits for it.
package keyed
