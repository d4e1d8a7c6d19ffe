package wipe

import "time"

// What a restart may cost by default: so much is wiped again.
const (
	MarkBytes    = 64 << 30
	MarkInterval = 5 * time.Minute
)

// Marks says when progress is worth a record: a restart then begins behind it, so that a
// large disk is wiped at some time though its node restarts every day. Each record is a
// change of the metadata, so there are few, and none for what is wiped soon.
type Marks struct {
	// Bytes and Interval after which there is one.
	Bytes    int64
	Interval time.Duration

	done int64
	at   time.Time
}

// From begins with what is recorded.
func (m *Marks) From(done int64, now time.Time) { m.done, m.at = done, now }

// Due says whether it shall be recorded that so much is done, and takes it that it is. Less
// than is recorded always is.
func (m *Marks) Due(done int64, now time.Time) bool {
	if done >= m.done && done-m.done < m.Bytes && (done == m.done || now.Sub(m.at) < m.Interval) {
		return false
	}
	m.From(done, now)
	return true
}
