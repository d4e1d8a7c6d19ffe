// Package keyed serialises work by key: one lock per volume, none for the rest.
// Those who do not mind each other share a key.
//
// Waiting ends with the caller's context, so that a client that gives up leaves
// the queue at once and repeated calls for one stuck volume do not pile up. The
// lock of a key exists only while someone holds it or waits for it.
package keyed
