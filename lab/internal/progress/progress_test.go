package progress

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// clock is a time that moves only when told.
type clock struct{ t time.Time }

func (c *clock) now() time.Time          { return c.t }
func (c *clock) advance(d time.Duration) { c.t = c.t.Add(d) }

func TestPlainPrintsOneLineAtTheStartAndOneAtTheEnd(t *testing.T) {
	var out bytes.Buffer
	c := &clock{}
	p := NewPlain(&out, c.now)

	etcd := p.Step("etcd")
	c.advance(1500 * time.Millisecond)
	api := p.Step("kube-apiserver")
	etcd.Note("compiling %d", 7)
	etcd.Done(nil)
	etcd.Done(errors.New("too late to count"))
	c.advance(61 * time.Second)
	api.Done(errors.New("boom"))

	want := `... etcd
... kube-apiserver
done etcd (1.5s)
FAILED kube-apiserver (1m01s)
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
}

func TestLiveRedrawsRunningStepsBelowFinishedOnes(t *testing.T) {
	c := &clock{}
	screen := &terminal{}
	l := newLive(screen, func() int { return 40 }, c.now)

	a, b := l.Step("a"), l.Step("b")
	c.advance(2 * time.Second)
	b.Note("half way")
	l.refresh()
	if diff := cmp.Diff([]string{"  ... a 2.0s", "  ... b 2.0s  half way"}, screen.lines()); diff != "" {
		t.Errorf("while running (-want +got):\n%s", diff)
	}
	a.Done(nil)
	b.Done(errors.New("boom"))
	b.Done(nil)
	if diff := cmp.Diff([]string{"  ok  a 2.0s", "FAIL  b 2.0s"}, screen.lines()); diff != "" {
		t.Errorf("at the end (-want +got):\n%s", diff)
	}
}

func TestLiveClipsLinesToTheTerminal(t *testing.T) {
	screen := &terminal{}
	l := newLive(screen, func() int { return 20 }, (&clock{}).now)
	l.Step(strings.Repeat("ü", 50))
	if got := screen.lines()[0]; len([]rune(got)) != 19 {
		t.Errorf("line %q has %d characters, want 19", got, len([]rune(got)))
	}
}

func TestSeconds(t *testing.T) {
	cases := map[string]struct {
		elapsed time.Duration
		want    string
	}{
		"short times have a decimal":       {400 * time.Millisecond, "0.4s"},
		"seconds are whole from ten on":    {12345 * time.Millisecond, "12s"},
		"minutes keep two-digit seconds":   {185 * time.Second, "3m05s"},
		"rounding up reaches a new minute": {119600 * time.Millisecond, "2m00s"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := seconds(c.elapsed); got != c.want {
				t.Errorf("seconds(%v) = %q, want %q", c.elapsed, got, c.want)
			}
		})
	}
}
