// Package trim has the filesystems of a node's volumes discard their free blocks as often as their classes say.
//
//	round: note new volumes; of each pool in which none is trimmed, begin to trim those that are due
//	trim:  part by part, one filesystem of a pool after the other
//
// A trim holds its mount busy. So each call is about a part that takes no more than moments, and nothing is held
// between two parts: a volume that is unstaged meanwhile comes off after the part, and the next part finds it
// gone. What was reached is kept, and the trim goes on there when the volume is mounted again.
//
// The effects: the trim of one part, and a file for each volume in the driver's directory. A file that is lost
// costs one trim that comes later; no write of the API server is needed.
package trim
