package explore

import (
	"fmt"
	"strings"

	"berth.dev/berth/internal/ownership"
)

// Story writes down a schedule for a person to read: each event, and the decisions
// and actions of the processes because of it.
type Story struct {
	b    strings.Builder
	line int
	// Detailed: it also tells how the world comes to rest after the faults.
	Detailed bool
}

func (s *Story) detailed() bool { return s != nil && s.Detailed }

func (s *Story) begin(e Event) {
	if s == nil {
		return
	}
	s.line++
	fmt.Fprintf(&s.b, "%3d  %s\n", s.line, e)
}

func (s *Story) say(format string, args ...any) {
	if s == nil {
		return
	}
	s.b.WriteString("       ")
	fmt.Fprintf(&s.b, format, args...)
	s.b.WriteByte('\n')
}

// String is the story so far.
func (s *Story) String() string { return s.b.String() }

func (w *World) tell(who int, what string, a ownership.Action) {
	if w.story == nil {
		return
	}
	w.story.say("%s %s: %v (%s: %s)", names[who], what, a.Verb, a.Reason, a.Message())
}

func (w *World) tellEvent(format string, args ...any) { w.story.say(format, args...) }

func (w wire) tellStream(s stream, ok bool, why ownership.Why) {
	if w.story == nil {
		return
	}
	answer := "refuses"
	if ok {
		answer = "applies"
	}
	w.story.say("%s %s the stream %v -> %v (%s: %s)", names[s.to], answer, s.header.Base, s.header.Target, why.Reason, why.Message())
}
