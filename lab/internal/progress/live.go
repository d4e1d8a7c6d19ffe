package progress

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
	"unicode/utf8"
)

// live keeps one line per running step at the bottom of a terminal; finished
// steps scroll away above them.
type live struct {
	mu      sync.Mutex
	w       io.Writer
	width   func() int
	now     func() time.Time
	running []*liveStep
	drawn   int // live lines on the screen now
}

func newLive(w io.Writer, width func() int, now func() time.Time) *live {
	return &live{w: w, width: width, now: now}
}

// refreshEvery redraws the elapsed times until the returned function is called.
func (l *live) refreshEvery(period time.Duration) (stop func()) {
	ticker := time.NewTicker(period)
	done := make(chan struct{})
	var finished sync.WaitGroup
	finished.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				l.refresh()
			}
		}
	})
	return func() {
		ticker.Stop()
		close(done)
		finished.Wait()
	}
}

func (l *live) refresh() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.running) > 0 {
		l.draw("")
	}
}

// Step implements [Reporter].
func (l *live) Step(name string) Step {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &liveStep{live: l, name: name, start: l.now()}
	l.running = append(l.running, s)
	l.draw("")
	return s
}

// draw replaces the live lines; finished, if not empty, stays above them for
// good. One write per draw, so that the terminal never shows half a picture.
func (l *live) draw(finished string) {
	var b bytes.Buffer
	if l.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", l.drawn)
	}
	b.WriteString("\r\x1b[J")
	if finished != "" {
		fmt.Fprintln(&b, finished)
	}
	width := l.width()
	for _, s := range l.running {
		fmt.Fprintln(&b, clip(s.line(l.now()), width-1))
	}
	l.drawn = len(l.running)
	_, _ = l.w.Write(b.Bytes()) // the work goes on without a terminal
}

type liveStep struct {
	live  *live
	name  string
	start time.Time
	note  string
}

func (s *liveStep) line(now time.Time) string {
	line := fmt.Sprintf("  ... %s %s", s.name, seconds(now.Sub(s.start)))
	if s.note != "" {
		line += "  " + s.note
	}
	return line
}

func (s *liveStep) Note(format string, args ...any) {
	s.live.mu.Lock()
	defer s.live.mu.Unlock()
	s.note = fmt.Sprintf(format, args...)
}

func (s *liveStep) Done(err error) {
	l := s.live
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.running, s)
	if i < 0 {
		return
	}
	l.running = slices.Delete(l.running, i, i+1)
	mark := "\x1b[32m  ok\x1b[0m "
	if err != nil {
		mark = "\x1b[31mFAIL\x1b[0m "
	}
	l.draw(fmt.Sprintf("%s %s %s", mark, s.name, seconds(l.now().Sub(s.start))))
}

// clip shortens s to n characters, because a wrapped line would break the
// count of lines to go up.
func clip(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n])
}
