// Package notices tells people of orphans, by events of the StorageNode that reports
// them: when one is first seen, and a day before its deadline. It also tells of changes
// that Berth made to a pool because a class asks for them, of the obstacles to such
// changes, and of thin pools that fill up.
//
// The report and the time alone decide which events are due, and the name of an event
// follows from its content. So the process remembers nothing: a second controller, or
// one that has started anew, finds the event there.
package notices
