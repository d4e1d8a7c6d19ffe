//go:build e2e && thorough

package e2e

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/test/cluster"
	"berth.dev/berth/test/rounds"
	"berth.dev/berth/test/writes"
)

// consoles has what writers acknowledged on the consoles of the lab's nodes. They reach this machine
// whatever is cut.
type consoles struct {
	mu   sync.Mutex
	seen []acknowledged
}

type acknowledged struct {
	writes.Acknowledgement
	at time.Time
}

// followConsoles reads the consoles from now on, until the test ends.
func (b *bench) followConsoles(nodes []string) *consoles {
	b.Helper()
	c := &consoles{}
	for line := range strings.Lines(b.lab("logs")) {
		name, path, _ := strings.Cut(strings.TrimSpace(line), " ")
		node, log, _ := strings.Cut(name, "/")
		if log != "console" || !slices.Contains(nodes, node) {
			continue
		}
		f, err := os.Open(path)
		b.must(err, "opening a console")
		_, err = f.Seek(0, io.SeekEnd)
		b.must(err, "opening a console")
		go func() {
			err := errors.Join(c.follow(b.ctx, f), f.Close())
			if err != nil {
				b.Errorf("reading the console of %s: %v", node, err)
			}
		}()
	}
	return c
}

// follow reads a file that grows.
func (c *consoles) follow(ctx context.Context, f io.Reader) error {
	looks := time.NewTicker(10 * time.Millisecond)
	defer looks.Stop()
	var rest []byte
	raw := make([]byte, 64<<10)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-looks.C:
		}
		n, err := f.Read(raw)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		rest = append(rest, raw[:n]...)
		for {
			line, after, whole := bytes.Cut(rest, []byte("\n"))
			if !whole {
				break
			}
			rest = after
			if a, ok := writes.ParseAcknowledgement(string(line)); ok {
				c.mu.Lock()
				c.seen = append(c.seen, acknowledged{a, time.Now()})
				c.mu.Unlock()
			}
		}
	}
}

func (c *consoles) all() (out []writes.Acknowledgement) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range c.seen {
		out = append(out, a.Acknowledgement)
	}
	return out
}

// term is that of the latest writer.
func (c *consoles) term() (term int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range c.seen {
		term = max(term, a.Term)
	}
	return term
}

// since is how many writes were acknowledged after a time.
func (c *consoles) since(t time.Time) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := len(c.seen) - 1; i >= 0 && c.seen[i].at.After(t); i-- {
		n++
	}
	return n
}

// after is when a writer later than a term acknowledged its first write.
func (c *consoles) after(term int64) (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range c.seen {
		if a.Term > term {
			return a.at, true
		}
	}
	return time.Time{}, false
}

// gap is the longest time without an acknowledgement from shortly before a time until now.
func (c *consoles) gap(from time.Time) (longest time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := from
	for _, a := range c.seen {
		if a.at.Before(from) {
			last = a.at
			continue
		}
		longest, last = max(longest, a.at.Sub(last)), a.at
	}
	return max(longest, time.Since(last))
}

// stations notes when the steps of a failover are reached.
type stations struct {
	mu    sync.Mutex
	began time.Time
	steps []rounds.Step
}

func (s *stations) reach(name string, when time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.ContainsFunc(s.steps, func(has rounds.Step) bool { return has.Name == name }) {
		s.steps = append(s.steps, rounds.Step{Name: name, After: when.Sub(s.began).Round(time.Millisecond).Seconds()})
	}
}

// list has the steps in the order of their times.
func (s *stations) list() []rounds.Step {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := slices.Clone(s.steps)
	slices.SortStableFunc(out, func(a, b rounds.Step) int {
		switch {
		case a.After < b.After:
			return -1
		case a.After > b.After:
			return 1
		}
		return 0
	})
	return out
}

// observe notes the steps from epoch and pod on, until ctx ends.
func (p *player) observe(ctx context.Context, s *stations, epoch int64, pod *corev1.Pod) error {
	first := pod.UID
	volumes, err := p.changes(ctx, &v1alpha1.VolumeList{}, p.volume)
	if err != nil {
		return err
	}
	pods, err := p.changes(ctx, &corev1.PodList{}, pod)
	if err != nil {
		return err
	}
	go func() {
		for change := range volumes.ResultChan() {
			v, is := change.Object.(*v1alpha1.Volume)
			if !is || v.Status.Ownership == nil {
				continue
			}
			o, now := v.Status.Ownership, time.Now()
			next := o.Epoch.Number > epoch
			if o.FenceRequest != nil {
				s.reach(rounds.Asked, now)
			}
			if o.Primary.Phase == v1alpha1.PrimaryFenced || next {
				s.reach(rounds.Fenced, now)
			}
			if o.Primary.Phase == v1alpha1.PrimaryActive && next {
				s.reach(rounds.Promoted, now)
			}
		}
	}()
	go func() {
		for change := range pods.ResultChan() {
			now, is := change.Object.(*corev1.Pod)
			if !is || now.UID == first {
				continue
			}
			if now.Spec.NodeName != "" {
				s.reach(rounds.Bound, time.Now())
			}
			if cluster.Running(now) {
				s.reach(rounds.Runs, time.Now())
			}
		}
	}()
	return nil
}

// changes watches one object.
func (p *player) changes(ctx context.Context, list client.ObjectList, of client.Object) (watch.Interface, error) {
	w, err := p.Watch(ctx, list, client.InNamespace(of.GetNamespace()),
		client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", of.GetName())})
	if err == nil {
		context.AfterFunc(ctx, w.Stop)
	}
	return w, err
}
