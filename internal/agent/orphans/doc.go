// Package orphans keeps what is in a node's pools and in no object, and lets it go
// when it is forgotten.
//
// Set is what was found. It is never removed for that alone: an object may be restored,
// or made anew by adopting the data.
//
// Judge decides whether one may be deleted:
//
//	Judge(StorageNode, record, retention, now) -> delete or not, reason, message
//
// It may if the StorageNode, read live, names it in spec.forget exactly as the report in
// its status shows it, or if the report shows a deadline that has passed; and if the data
// at hand is still the data that was reported. Settle reads the data's own object after
// that, and deletes only if there is none: whoever makes the object in between is heard.
//
// A word and a deadline may both come back with an old backup of the API server, when the
// data may have been adopted since. So a word is good for a day, and a deadline counts for
// what this process has known as an orphan for a day.
//
// The time from which an orphan is counted is in the report and nowhere else. Where
// it is lost with its StorageNode the count begins anew, and what was forgotten is kept:
// all that can go wrong makes an orphan stay longer.
package orphans
