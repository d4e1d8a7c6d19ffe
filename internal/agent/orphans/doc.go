// Package orphans keeps the data in a node's pools that has no object, and deletes it
// when it is forgotten.
//
// Set holds the orphans that were found. That alone never deletes one: its object may be
// restored, or made anew by adopting the data. Package decide/orphan decides whether one may be
// deleted. Word asks it by the node's StorageNode, which is read live before an orphan may go.
// After that, Settle reads the data's own object and deletes only if there is none: an object
// that is made in between saves the data.
package orphans
