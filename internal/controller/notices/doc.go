// Package notices tells people of orphans and of pools, by the events of the StorageNode that
// package decide/notice names.
//
// The name of an event follows from its content. So the process remembers nothing: a second
// controller, or one that has started anew, finds the event there.
package notices
