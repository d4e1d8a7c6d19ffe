// Package run is the one place where Berth executes commands.
//
// A command is an argument vector, never a string for a shell, and runs with
// LC_ALL=C. There are two kinds, and the difference is in the type:
//
//   - A query changes nothing. It takes a context and is killed, with everything
//     it started, when that context ends.
//   - A change takes no context, so nothing can kill it: a storage command that
//     dies in the middle leaves a half-made volume behind. Who waits for it may give
//     up; Tasks carries the whole operation to its end and tells its owner, who
//     refreshes what it knows.
//
// A failed command is an *ExitError with the exit code and the tail of what it
// wrote to standard error. Its text is for people; nothing is decided by it.
package run
