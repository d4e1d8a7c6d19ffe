// Package quarantine has the actions of administrators on data and objects that have lost
// each other:
//
//   - List returns them: data that no object accounts for, as the nodes report it,
//     and objects whose data is missing.
//   - Adopt makes the objects for data anew, from the record beside the data. An
//     adopted Volume is never made or formatted, and an adopted Snapshot never taken. So
//     the worst result of a mistake is an object that says that its data is missing.
//   - Forget names data that may be deleted in the spec of its node's StorageNode, by
//     compare-and-swap with the report that shows it. The agent checks all of it again.
//   - ForgetNode writes on Volumes and Snapshots that a node is gone for good, so that they do
//     not wait for it once they are deleted. It deletes nothing.
//
// Every function reads the API server, never a cache, and may be repeated: it finds the
// results of an earlier run and leaves them.
package quarantine
