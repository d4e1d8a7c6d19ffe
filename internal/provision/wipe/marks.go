package wipe

import "time"

// The defaults of Marks. They bound the work that a restart repeats.
const (
	MarkBytes    = 64 << 30
	MarkInterval = 5 * time.Minute
)

// Marks says when to record the progress of a wipe. After a restart the wipe continues at
// the record, so that a large disk is wiped in the end even if its node restarts every day.
// Each record is a change of the metadata, so there are few, and none for a short wipe.
type Marks struct {
	// Bytes or Interval after which progress is recorded.
	Bytes    int64
	Interval time.Duration

	done int64
	at   time.Time
}

// From sets the recorded progress and its time.
func (m *Marks) From(done int64, now time.Time) { m.done, m.at = done, now }

// Due says whether the caller shall record that done bytes are wiped; if so, it assumes that
// the caller does. Progress below the record is always due.
func (m *Marks) Due(done int64, now time.Time) bool {
	if done >= m.done && done-m.done < m.Bytes && (done == m.done || now.Sub(m.at) < m.Interval) {
		return false
	}
	m.From(done, now)
	return true
}
