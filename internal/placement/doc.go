// Package placement decides on which node, and in which pool of it, a volume
// goes. It is pure: reports and volumes in, a decision with its reason out.
//
// A node's report gives total and foreign bytes; what Berth's own volumes take
// is summed from the Volumes. So a volume that was created a moment ago counts
// before its node has reported again. The decision is still only a proposal:
// the node has the last word when it carves the volume.
//
// Among the pools that fit, the one with the most free space wins, which
// spreads volumes. Nodes that the caller prefers come before that rule.
package placement
