// Package sendstream reads streams of btrfs, and applies them to a subvolume.
//
// The kernel writes such a stream. Package sendstream applies it, and not the program btrfs receive:
// that looks for its base among all subvolumes of the filesystem by UUIDs which the stream names, follows
// the paths of the stream as root, and opens whatever file is there. A stream comes from another node
// and is taken for hostile:
//
//   - Every path is resolved beneath the one subvolume, and no symbolic link is followed.
//   - Only regular files are opened. A device or a pipe that a stream made is never opened.
//   - The base is chosen by the caller; UUIDs in the stream choose nothing.
//   - Data is cloned only from the subvolume itself.
//   - Each command has a checksum and a bounded length, and nothing follows the last one.
//
// Room is bounded by the limit of the subvolume, which the caller sets. Streams of version 1 are known:
// they have no compressed data, which could be damaged without notice. A run of zeros is not written
// but left out, since a sender writes zeros where its file has a hole.
package sendstream
