// Package quarantine is what administrators do about data and objects that have lost
// each other:
//
//   - List says what there is: data that no object accounts for, as the nodes report it,
//     and objects whose data is missing.
//   - Adopt makes the objects for data anew, by what is recorded with the data. An
//     adopted Volume is never made or formatted, and an adopted Snapshot never taken, so
//     that the worst that can come of a mistake is one that says that its data is missing.
//   - Forget names data that may be deleted in the spec of its node's StorageNode, by
//     compare-and-swap with the report that shows it. The agent checks all of it again.
//   - ForgetNode writes on Volumes and Snapshots that a node is gone for good, so that they do
//     not wait for it once they are deleted. It deletes nothing.
//
// Every function reads the API server, never a cache, and may be repeated: what an
// earlier run has done is found and left.
package quarantine
