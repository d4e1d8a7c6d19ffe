// Package lineage orders the snapshots of a volume across changes of its writer.
//
// A volume's history is a tree. Every change of primary opens an epoch, and an
// epoch begins at one point of an earlier epoch:
//
//	epoch 1   1──2──3──4           4 was never sent anywhere
//	                └─ epoch 2     4──5──6
//	                                  └─ epoch 3   6──7   (its 6 is not epoch 2's 6)
//
// The path from the head epoch back to the root is the lineage; every other branch
// has diverged. A snapshot is a Point: the epoch that wrote it and a sequence
// number that grows along every path, so that inside the lineage a larger sequence
// is newer. Outside it the number means nothing, which is why "highest number wins"
// loses data: epoch 1's 4 and epoch 2's 4 are different.
//
// An epoch has a random id beside its number. A control plane restored from an
// old backup hands out a number a second time; it cannot hand out the id again.
// Two epochs are the same only if both agree.
//
// The package is pure: no clock, no randomness, no I/O. Values are never changed
// in place, so they may be shared freely.
package lineage
