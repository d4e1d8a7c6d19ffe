package reading

// Moment is a place in the order in which things happened; 0 is before all of them.
type Moment uint64

// Clock orders what happens. The zero value is ready to use. Its owner guards it, by the
// lock that guards what it orders.
type Clock struct{ last Moment }

// Now returns a moment later than all before.
func (c *Clock) Now() Moment {
	c.last++
	return c.last
}

// Mark is the account that is kept of one thing. The zero value is of one that was never read.
type Mark struct{ changed, asked Moment }

// Changed notes that others may have changed it, at a moment or before.
func (m *Mark) Changed(at Moment) { m.changed = max(m.changed, at) }

// Due says whether it is to be read: it may have changed since the answer that is known was
// asked for.
func (m *Mark) Due() bool { return m.asked <= m.changed }

// Overtaken says whether an answer is known that was asked for after this one.
func (m *Mark) Overtaken(asked Moment) bool { return asked < m.asked }

// Read notes that an answer was taken in that was asked for at a moment.
func (m *Mark) Read(asked Moment) { m.asked = max(m.asked, asked) }
