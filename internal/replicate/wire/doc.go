// Package wire holds the frames and messages in which a snapshot stream travels between two nodes.
//
// It is pure: bytes in, values or an *Error out. It knows no connection, no clock and no lock, and it
// trusts no byte. Each length is compared with a bound before memory is taken for it, each text has an
// alphabet, and a message has no room for bytes that its reader skips. So encoding what was decoded gives
// the same bytes again.
//
// # Frame
//
//	offset  size
//	0       1     kind
//	1       1     flags: 1 is packed with zstd, only in frames of data
//	2       2     zero
//	4       4     length of the payload on the wire
//	8       4     length of the payload unpacked
//	12      8     sum
//	20            payload
//
// Numbers are big-endian.
//
// # Sum
//
// The sum is XXH64 of the frame's first 12 bytes and its unpacked payload, seeded with the sum of the
// frame before it in the same direction. One pass over the data finds a changed bit, and a frame that was
// lost, repeated, moved or taken from another stream. The last sum is the hash of the whole stream.
//
// TLS keeps an attacker from changing bytes on the way. The sum finds the mistakes that TLS cannot see:
// of memory, of the compressor, of Berth. A fast hash suffices for that. Measured on one core of the
// machine that docs/replication-stream.md names, in MB/s: SHA-256 830, BLAKE3 1600, AES-GCM 3000, CRC-32C
// 7600, XXH64 8600, XXH3 14800. XXH64 has 64 bits where CRC-32C has 32, and the programs already contain
// it. XXH3 would save 0.05 processor seconds per GiB for one more dependency.
//
// # Conversation
//
//	receiver                                sender
//	                     <------------      Hello
//	Hello, Want          ------------>
//	                     <------------      Offer (or Refuse)
//	Accept (or Refuse)   ------------>
//	                     <------------      Data ...
//	Ack ...              ------------>
//	                     <------------      Done
//	Committed            ------------>
//
// Either end may say Abort at any time, and says Alive when it has had nothing else to say for a while.
// Package stream holds the order.
package wire
