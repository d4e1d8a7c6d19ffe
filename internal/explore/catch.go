package explore

import "strings"

// Catch looks for a schedule that shows a mistake in the rules, and shrinks it. It
// prefers harm done over a goal not reached.
func Catch(rules *Rules, schedules uint64) (Outcome, bool) {
	var stuck Outcome
	buf := make([]Event, 0, Steps)
	for seed := range schedules {
		o := Random(seed, rules, buf)
		if o.Violation == "" {
			continue
		}
		if strings.HasPrefix(o.Violation, "rest:") {
			if stuck.Violation == "" {
				stuck = o
				stuck.Events = append([]Event(nil), o.Events...)
			}
			continue
		}
		return shrunk(o, rules), true
	}
	if stuck.Violation == "" {
		return Outcome{}, false
	}
	return shrunk(stuck, rules), true
}

func shrunk(o Outcome, rules *Rules) Outcome {
	o.Events = Shrink(o.Config, rules, append([]Event(nil), o.Events...), o.Violation)
	o.World = Replay(o.Config, rules, o.Events, nil)
	o.Violation = o.World.Violation
	return o
}
