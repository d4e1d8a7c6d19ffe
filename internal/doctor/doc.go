// Package doctor compares what claims, PersistentVolumes, Volumes, VolumeSnapshots and their contents,
// Snapshots and the reports of the nodes say about the same data, and returns each disagreement with the way out. It is a function
// of objects that the caller has read: it asks nothing and changes nothing.
//
// Each kind of disagreement has an identifier, which does not change, and a row in docs/kubectl.md.
package doctor
