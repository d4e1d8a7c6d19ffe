package shell

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
)

// telling is how much of a schedule is told.
type telling int

const (
	untold telling = iota
	// plainly: what happens in the world.
	plainly
	// wholly: also what processes log.
	wholly
)

// tale is the story of a schedule, for people: when, who, what.
type tale struct {
	began time.Time
	how   telling

	mu    sync.Mutex
	lines []string
	// told: the story is over.
	told bool
}

// tells adds a line to the story.
func (t *tale) tells(who, format string, args ...any) {
	if t.how == untold {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.told {
		return
	}
	t.lines = append(t.lines, fmt.Sprintf("%8.3f  %-15s ", time.Since(t.began).Seconds(), who)+fmt.Sprintf(format, args...))
}

// ends ends the story.
func (t *tale) ends(who, format string, args ...any) {
	t.tells(who, format, args...)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.told = true
}

func (t *tale) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.lines, "\n")
}

// log is where a process logs.
func (t *tale) log(p *process) logr.Logger {
	if t.how != wholly {
		return logr.Discard()
	}
	return logr.New(&teller{tale: t, who: p.name})
}

// teller puts what a process logs into the story.
type teller struct {
	tale *tale
	who  string
}

func (t *teller) Init(logr.RuntimeInfo) {}
func (t *teller) Enabled(int) bool      { return true }
func (t *teller) Info(_ int, msg string, kv ...any) {
	t.tale.tells(t.who, "logs: %s %s", msg, strings.TrimSuffix(fmt.Sprintln(kv...), "\n"))
}
func (t *teller) Error(err error, msg string, kv ...any) {
	t.tale.tells(t.who, "logs: %s: %v %v", msg, err, kv)
}
func (t *teller) WithValues(...any) logr.LogSink { return t }
func (t *teller) WithName(string) logr.LogSink   { return t }
