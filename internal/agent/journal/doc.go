// Package journal keeps what a node must know of a volume that it has no copy of: a shared disk. For a
// copy most of that is kept beside the data, and the journal has the rest.
//
// There is a file for each volume, replaced as a whole: written beside it, synced, renamed, and the
// directory synced. What Store has stored survives the agent and the machine's loss of power; a crash
// leaves the file from before or from after. Erase removes the file of a deleted volume. A file that
// cannot be read is an error and never the same as no file: a node that forgot a promise could write
// into an epoch that it gave up.
package journal
