package reading_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"berth.dev/berth/internal/provision/reading"
)

func TestAnObjectIsDueUnlessItWasReadSinceItsLastChange(t *testing.T) {
	for name, tc := range map[string]struct {
		happens func(c *reading.Clock, m *reading.Mark)
		due     bool
	}{
		"the object was never read": {func(*reading.Clock, *reading.Mark) {}, true},
		"the object was read":       {func(c *reading.Clock, m *reading.Mark) { m.Read(c.Now()) }, false},
		"the object changed after the read": {func(c *reading.Clock, m *reading.Mark) {
			m.Read(c.Now())
			m.Changed(c.Now())
		}, true},
		"the object changed during the read": {func(c *reading.Clock, m *reading.Mark) {
			asked := c.Now()
			m.Changed(c.Now())
			m.Read(asked)
		}, true},
		"a new read of the changed object has not answered yet": {func(c *reading.Clock, m *reading.Mark) {
			m.Read(c.Now())
			m.Changed(c.Now())
			c.Now()
		}, true},
		"an older answer came after a newer answer": {func(c *reading.Clock, m *reading.Mark) {
			older := c.Now()
			m.Changed(c.Now())
			m.Read(c.Now())
			m.Read(older)
		}, false},
		"an older change was noted after a newer read": {func(c *reading.Clock, m *reading.Mark) {
			older := c.Now()
			m.Read(c.Now())
			m.Changed(older)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var c reading.Clock
			var m reading.Mark
			tc.happens(&c, &m)
			if got := m.Due(); got != tc.due {
				t.Errorf("due is %t", got)
			}
		})
	}
}

func TestAnAnswerIsOvertakenByOneThatWasAskedForLater(t *testing.T) {
	var c reading.Clock
	var m reading.Mark
	first, second, third := c.Now(), c.Now(), c.Now()
	m.Read(second)
	for asked, want := range map[reading.Moment]bool{first: true, second: false, third: false} {
		if got := m.Overtaken(asked); got != want {
			t.Errorf("an answer asked for at %d is overtaken by one at %d: %t", asked, second, got)
		}
	}
}

// world is an object with a version, the reads of it that are running, and the known version.
type world struct {
	version, known int
	clock          reading.Clock
	mark           reading.Mark
	readers        []reader
}

// reader asked at a moment, and saw a version at some time after that; -1 if not yet.
type reader struct {
	asked reading.Moment
	saw   int
}

// In any order of changes, notices, requests, answers and dropped answers: if the object is
// not due, the known version has all changes that were noticed.
func TestAnObjectThatIsNotDueIsKnown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, noticed := &world{}, 0
		t.Repeat(map[string]func(*rapid.T){
			"change": func(*rapid.T) { w.version++ },
			"notice": func(*rapid.T) {
				noticed = w.version
				w.mark.Changed(w.clock.Now())
			},
			"ask": func(*rapid.T) { w.readers = append(w.readers, reader{w.clock.Now(), -1}) },
			"see": func(t *rapid.T) {
				if i := w.draw(t); i >= 0 && w.readers[i].saw < 0 {
					w.readers[i].saw = w.version
				}
			},
			"answer": func(t *rapid.T) { w.answer(w.draw(t)) },
			"give up": func(t *rapid.T) {
				if i := w.draw(t); i >= 0 {
					w.readers = slices.Delete(w.readers, i, i+1)
				}
			},
			"": func(t *rapid.T) {
				if !w.mark.Due() && w.known < noticed {
					t.Fatalf("version %d was noticed, %d is known, and nothing is due", noticed, w.known)
				}
			},
		})
	})
}

// draw returns one of the readers; -1 if there is none.
func (w *world) draw(t *rapid.T) int {
	if len(w.readers) == 0 {
		return -1
	}
	return rapid.IntRange(0, len(w.readers)-1).Draw(t, "reader")
}

func (w *world) answer(i int) {
	if i < 0 || w.readers[i].saw < 0 {
		return
	}
	r := w.readers[i]
	w.readers = slices.Delete(w.readers, i, i+1)
	if w.mark.Overtaken(r.asked) {
		return
	}
	w.known = r.saw
	w.mark.Read(r.asked)
}
