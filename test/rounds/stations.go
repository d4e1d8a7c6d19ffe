package rounds

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"berth.dev/berth/test/writes"
)

// Stations notes when the steps of a failover are reached.
type Stations struct {
	mu    sync.Mutex
	began time.Time
	steps []Step
}

// Begin is the moment of the fault, from which the steps count.
func (s *Stations) Begin(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.began, s.steps = at, nil
}

// Began is the moment of the fault.
func (s *Stations) Began() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.began
}

// Reach notes a step. Only the first time counts.
func (s *Stations) Reach(name string, when time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.ContainsFunc(s.steps, func(has Step) bool { return has.Name == name }) {
		s.steps = append(s.steps, Step{Name: name, After: when.Sub(s.began).Round(time.Millisecond).Seconds()})
	}
}

// List has the steps in the order of their times.
func (s *Stations) List() []Step {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := slices.Clone(s.steps)
	slices.SortStableFunc(out, func(a, b Step) int { return cmp.Compare(a.After, b.After) })
	return out
}

// Heard has what writers acknowledged, and when that was heard.
type Heard struct {
	mu   sync.Mutex
	seen []acknowledged
}

type acknowledged struct {
	writes.Acknowledgement
	at time.Time
}

// Hear takes a line of a writer, or any other line.
func (h *Heard) Hear(line string) {
	a, ok := writes.ParseAcknowledgement(line)
	if !ok {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen = append(h.seen, acknowledged{a, time.Now()})
}

// All has every acknowledgement.
func (h *Heard) All() (out []writes.Acknowledgement) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, a := range h.seen {
		out = append(out, a.Acknowledgement)
	}
	return out
}

// Term is that of the latest writer.
func (h *Heard) Term() (term int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, a := range h.seen {
		term = max(term, a.Term)
	}
	return term
}

// Since is how many writes were acknowledged after a time.
func (h *Heard) Since(t time.Time) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := len(h.seen) - 1; i >= 0 && h.seen[i].at.After(t); i-- {
		n++
	}
	return n
}

// After is when a writer later than a term acknowledged its first write.
func (h *Heard) After(term int64) (time.Time, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, a := range h.seen {
		if a.Term > term {
			return a.at, true
		}
	}
	return time.Time{}, false
}

// Gap is the longest time without an acknowledgement from shortly before a time until now.
func (h *Heard) Gap(from time.Time) (longest time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	last := from
	for _, a := range h.seen {
		if a.at.Before(from) {
			last = a.at
			continue
		}
		longest, last = max(longest, a.at.Sub(last)), a.at
	}
	return max(longest, time.Since(last))
}
