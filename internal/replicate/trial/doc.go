// Package trial moves a volume of its own between the pools of two nodes, as replication does: a tester or
// an administrator sees whether two nodes can replicate, and how fast. It touches no other volume.
//
// One node serves (Serve): it makes the volume, fills half of it and keeps a point, changes a little and
// keeps a second point. The other one fetches (Fetch) the first point in full and the second as an increment,
// opens its copy, and compares every byte. Both delete the volume at the end.
package trial
