// Package run is the one place where Berth executes commands.
//
// A command is an argument vector, never a string for a shell, and runs with
// LC_ALL=C. There are two kinds, and the difference is in the type:
//
//   - A query changes nothing. It takes a context and is killed, with everything
//     it started, when that context ends.
//   - A change takes no context, so no caller can kill it: a storage command that
//     dies while it runs leaves a half-made volume behind. A caller that waits for it may
//     give up. Tasks carries the whole operation to its end, and the operation brings its
//     owner's state up to date.
//
// A failed command is an *ExitError with the exit code and the tail of its standard
// error. That text is for people; Berth decides nothing by it.
package run
