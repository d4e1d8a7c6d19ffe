package progress

import (
	"regexp"
	"strconv"
	"strings"
)

// terminal understands just enough control sequences to know what a person
// would see: cursor up, erase below, carriage return; colours are ignored.
type terminal struct {
	screen []string
	row    int
}

var sequence = regexp.MustCompile(`\x1b\[(\d*)([A-Za-z])`)

func (t *terminal) Write(p []byte) (int, error) {
	rest := string(p)
	for rest != "" {
		if m := sequence.FindStringSubmatch(rest); m != nil && strings.HasPrefix(rest, m[0]) {
			t.control(m[1], m[2])
			rest = rest[len(m[0]):]
			continue
		}
		t.put(rest[:1])
		rest = rest[1:]
	}
	return len(p), nil
}

func (t *terminal) control(arg, kind string) {
	switch kind {
	case "A":
		n, _ := strconv.Atoi(arg)
		t.row -= n
	case "J":
		t.screen = t.screen[:min(t.row, len(t.screen))]
	}
}

func (t *terminal) put(b string) {
	switch b {
	case "\n":
		t.row++
	case "\r":
	default:
		for len(t.screen) <= t.row {
			t.screen = append(t.screen, "")
		}
		t.screen[t.row] += b
	}
}

func (t *terminal) lines() []string { return t.screen }
