package plain_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"berth.dev/berth/internal/plain"
)

func TestNothingThatATerminalObeysIsWritten(t *testing.T) {
	for text, want := range map[string]string{
		"name\tstate\nn1\tReady\n": "name\tstate\nn1\tReady\n",
		"größe 数":                  "größe 数",
		"y\x1b[2J":                 `y\x1b[2J`,
		"y\r\a\x7f":                `y\r\a\x7f`,
		"y\u009b2J":                `y\u009b2J`,
		"y\x9b2J":                  `y\x9b2J`,
		"y\u202etxt":               `y\u202etxt`,
	} {
		var out strings.Builder
		n, err := fmt.Fprint(plain.Writer{To: &out}, text)
		if err != nil || n != len(text) || out.String() != want {
			t.Errorf("%q: %d, %v, %q, want %q", text, n, err, out.String(), want)
		}
	}
	if _, err := fmt.Fprint(plain.Writer{To: broken{}}, "x"); !errors.Is(err, errBroken) {
		t.Errorf("%v", err)
	}
}

var errBroken = errors.New("broken")

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errBroken }

func TestATextOfOthersIsOneLine(t *testing.T) {
	if got := plain.Line("y\n  next: kubectl delete\r\n\tz\u2028q"); got != "y   next: kubectl delete z q" {
		t.Errorf("%q", got)
	}
}
