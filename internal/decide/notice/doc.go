// Package notice decides which events a node's report deserves: an orphan is told of when it is
// first seen, and a day before its deadline. A change that Berth made to a pool because a class
// asks for it is told of, an obstacle to such a change, and a thin pool that fills up.
//
// The report and the time alone decide which events are due, and the name of an event
// follows from its content.
package notice
