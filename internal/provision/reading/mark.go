package reading

// Moment is the place of an event in the order of a Clock; 0 is before all events.
type Moment uint64

// Clock orders events. The zero value is ready to use. Its owner guards it with the lock
// that guards the marks.
type Clock struct{ last Moment }

// Now returns a moment later than all before.
func (c *Clock) Now() Moment {
	c.last++
	return c.last
}

// Mark records when one object changed and was read. The zero value means it was never read.
type Mark struct{ changed, asked Moment }

// Changed notes that the object may have changed, at a moment or before.
func (m *Mark) Changed(at Moment) { m.changed = max(m.changed, at) }

// Due says whether the object must be read: it may have changed since the request of the
// latest known answer.
func (m *Mark) Due() bool { return m.asked <= m.changed }

// Overtaken says whether an answer is known that was requested after this one.
func (m *Mark) Overtaken(asked Moment) bool { return asked < m.asked }

// Read notes that an answer was taken in that was requested at a moment.
func (m *Mark) Read(asked Moment) { m.asked = max(m.asked, asked) }
