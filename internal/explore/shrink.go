package explore

import "strings"

// class is the invariant that a violation names: its first words.
func class(violation string) string {
	name, _, _ := strings.Cut(violation, ":")
	return name
}

// Shrink leaves out the events that a schedule does not need to break the same
// invariant, first in large pieces, then one event at a time.
func Shrink(cfg Config, rules *Rules, events []Event, violation string) []Event {
	breaks := func(candidate []Event) bool {
		return class(Replay(cfg, rules, candidate, nil).Violation) == class(violation)
	}
	for size := len(events) / 2; size >= 1; {
		shrunk := false
		for from := 0; from+size <= len(events); {
			candidate := append(append([]Event(nil), events[:from]...), events[from+size:]...)
			if breaks(candidate) {
				events, shrunk = candidate, true
			} else {
				from += size
			}
		}
		if size > 1 {
			size /= 2
		} else if !shrunk {
			break
		}
	}
	return plain(events, breaks)
}

// plain removes arguments that do not matter.
func plain(events []Event, breaks func([]Event) bool) []Event {
	for i, e := range events {
		if e.B == 0 || e.Kind == cuts || e.Kind == heals {
			continue
		}
		candidate := append([]Event(nil), events...)
		candidate[i].B = 0
		if breaks(candidate) {
			events = candidate
		}
	}
	return events
}
