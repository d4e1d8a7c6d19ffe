// Package sendstream reads the two parts of a stream of ZFS that a peer could abuse: the first record
// of a stream, and the token by which a stream is resumed.
//
// The kernel checks and applies the records of a stream, each with its checksum. What it cannot know is
// which stream was asked for. The first record says that: which snapshot the stream makes, which one it
// is the difference to, and of which kind the dataset is. Check compares all of it before the program
// zfs sees a byte. It also refuses every form of a stream that Berth never sends:
//
//   - A package of several streams, which may have properties, and names of datasets to make or destroy.
//   - Encrypted, redacted and deduplicated data.
//   - A header with data of its own, unless the stream is resumed.
//
// A token is the word of a receiver, and the program zfs sends whatever snapshot of the machine it
// names. CheckToken compares the snapshots that it names with those that the caller means to send.
//
// The forms are those of OpenZFS 2.1 to 2.3, in both byte orders.
package sendstream
