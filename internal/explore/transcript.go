package explore

import (
	"fmt"
	"strings"

	"berth.dev/berth/internal/ownership"
)

// Transcript writes a schedule down as a test that can be read and run again.
func Transcript(m Mutant, o Outcome) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# The mistake: %s.\n# What comes of it: %s.\n\n", m.Mistake, o.Violation)
	fmt.Fprintf(&b, "replay rules=%s %v\n", m.Name, o.Config)
	for _, e := range o.Events {
		fmt.Fprintln(&b, e)
	}
	b.WriteString("----\n")
	return b.String()
}

// ParseKind reads a volume kind as Config prints it.
func ParseKind(s string) (ownership.Kind, error) {
	for _, k := range []ownership.Kind{ownership.OneCopy, ownership.Snapshots, ownership.Attachments} {
		if k.String() == s {
			return k, nil
		}
	}
	return 0, fmt.Errorf("no volume kind %q", s)
}

// ParseEvents reads one event per line.
func ParseEvents(text string) ([]Event, error) {
	var out []Event
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		if line == "" {
			continue
		}
		e, err := ParseEvent(line)
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, nil
}
