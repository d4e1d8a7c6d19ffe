package progress

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

// Reporter starts steps. It is safe for concurrent use.
type Reporter interface {
	// Step announces that the named piece of work begins.
	Step(name string) Step
}

// Step is one running piece of work. It is safe for concurrent use.
type Step interface {
	// Note says what the step is doing now; a later note replaces it.
	Note(format string, args ...any)
	// Done ends the step, successfully when err is nil. Only the first call counts.
	Done(err error)
}

// New returns a reporter that suits w: live lines on a terminal, plain lines
// anywhere else. Call the returned function before the process ends, so that
// live lines are left in a final state.
func New(w io.Writer) (Reporter, func()) {
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb" {
		l := newLive(w, func() int { return terminalWidth(f) }, time.Now)
		stop := l.refreshEvery(200 * time.Millisecond)
		return l, stop
	}
	return NewPlain(w, time.Now), func() {}
}

// Discard drops all reports.
var Discard Reporter = discard{}

type discard struct{}

func (discard) Step(string) Step    { return discard{} }
func (discard) Note(string, ...any) {}
func (discard) Done(error)          {}

func terminalWidth(f *os.File) int {
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width < 20 {
		return 80
	}
	return width
}

// seconds formats an elapsed time for people: 0.4s, 12s, 3m05s.
func seconds(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%.0fs", d.Seconds())
	default:
		d = d.Round(time.Second)
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
}
