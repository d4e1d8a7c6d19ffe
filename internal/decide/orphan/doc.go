// Package orphan decides whether data without an object may be deleted:
//
//	Decide(StorageNode, record, retention, now) -> remove or keep, reason, message
//
// It may if the StorageNode, read live, names it in spec.forget exactly as the report in
// its status shows it, or if the report shows a deadline that has passed; and if the data
// at hand is still the data that was reported.
//
// An old backup of the API server may bring back an entry of spec.forget, or a deadline, for
// data that was adopted since. So an entry is valid for a day, and a deadline counts for data
// that this process has known as an orphan for a day.
//
// Only the report stores since when data is an orphan. If that is lost with its StorageNode
// the count begins anew, and data that was to be forgotten is kept: every failure makes an
// orphan stay longer.
package orphan
