// Package trim decides when a node trims the filesystem of a volume, and how much of it at once.
//
//	Decide(volume, kept, now) -> trim, note or none, reason, message
//
// A class says how often. Each volume has a moment of its own in each interval, which follows from its name: so
// the trims of a node are spread over the interval, and stay so after restarts. A volume that was not mounted at
// its moment is due until the next one.
//
// What is needed for that is kept on the node. A volume of which nothing is kept is noted first, and is due at
// its next moment. Otherwise a class that gets an interval, or a node that lost what it kept, would trim all
// volumes at once.
package trim
