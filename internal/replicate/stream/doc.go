// Package stream carries a snapshot from one node's pool to another's.
//
// The receiver asks (Receive), and the sender answers (Send, or Server for all who ask). Both ends of the connection prove which
// node they are (Dial, Accept). The pools are behind two small interfaces: the sender opens a Source
// out of a Stock, and the receiver fills an Intake of a Sink.
//
// # Promises
//
//   - The sink hears of a stream only after its header is the one that was asked for (Verify).
//   - Each byte that reaches the sink was compared with its sum.
//   - The sink gets the last frame only after the hash of the whole stream agrees. So no pool ever
//     completes a snapshot out of a stream that was cut, changed or never finished.
//   - Commit follows the last byte, Abort follows any fault, and exactly one of them is called.
//   - A stream has three frames in memory at each end at most. A slow pool or link slows the other end.
//   - Neither end waits for ever: not for a peer that is silent, nor for one that is alive and does nothing.
//
// After says what a receiver does next after each fault, and choose when data goes packed. Both are pure.
package stream
