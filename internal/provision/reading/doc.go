// Package reading decides when a cached object that other programs change too, such as a
// volume group or a zpool, must be read again, and which answers are newer than the cache.
//
// A read takes time. Meanwhile other programs make changes, Berth makes changes, and more
// reads begin. So an answer may show the state at the time of its request, not at the time
// it arrives. No noticed change is ever lost: an object is due until Berth takes in an answer
// that was requested later than the last change was noticed.
//
// The rejected alternative is a flag that is cleared when the read begins. If the answer is
// then dropped, because the reader gave up or because a change by Berth overtook it, no
// record is left that the read was needed.
package reading
