// Package peer lets nodes and controllers ask each other: for the state of a copy, for how long a node's
// guard has had no answer to a renewal, and whether a node lives.
//
// Who asks and who answers is proved by the certificates of internal/replicate/cert, never by an address.
// A question is one HTTP request with a JSON answer, over TLS 1.3 with certificates of both ends. HTTP/1.1
// suffices: an asker has one question at a time for a node, and a stream of beats has a connection of its
// own, so a slow answer holds up nothing else.
//
// Everything has a bound: sizes, times, connections of a peer and of all peers. Silence is no answer: a node
// that does not answer in time is not in the result.
package peer
