// Package orphans keeps the data in a node's pools that has no object, and deletes it
// when it is forgotten.
//
// Set holds the orphans that were found. That alone never deletes one: its object may be
// restored, or made anew by adopting the data.
//
// Judge decides whether one may be deleted:
//
//	Judge(StorageNode, record, retention, now) -> delete or not, reason, message
//
// It may if the StorageNode, read live, names it in spec.forget exactly as the report in
// its status shows it, or if the report shows a deadline that has passed; and if the data
// at hand is still the data that was reported. After that, Settle reads the data's own
// object and deletes only if there is none: an object that is made in between saves the data.
//
// An old backup of the API server may bring back an entry of spec.forget, or a deadline, for
// data that was adopted since. So an entry is valid for a day, and a deadline counts for data
// that this process has known as an orphan for a day.
//
// Only the report stores since when data is an orphan. If that is lost with its StorageNode
// the count begins anew, and data that was to be forgotten is kept: every failure makes an
// orphan stay longer.
package orphans
