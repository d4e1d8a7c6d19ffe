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
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/test/cluster"
	"berth.dev/berth/test/rounds"
)

// consoles has what writers acknowledged on the consoles of the lab's nodes. They reach this machine
// whatever is cut.
type consoles struct{ rounds.Heard }

// followConsoles reads the consoles from now on, until the test ends.
func followConsoles(b *bench, nodes []string) *consoles {
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
			c.Hear(string(line))
		}
	}
}

// observe notes the steps from the round's epoch and pod on, until ctx ends.
func (r *round) observe(ctx context.Context) error {
	volumes, err := r.changes(ctx, &v1alpha1.VolumeList{}, r.volume)
	if err != nil {
		return err
	}
	pods, err := r.changes(ctx, &corev1.PodList{}, r.pod)
	if err != nil {
		return err
	}
	go func() {
		for change := range volumes.ResultChan() {
			if v, is := change.Object.(*v1alpha1.Volume); is && v.Status.Ownership != nil {
				r.steps(v.Status.Ownership, time.Now())
			}
		}
	}()
	go nextPods(pods, r.pod.UID, rounds.Bound, &r.Stations)
	return nil
}

// steps notes the steps that the record shows.
func (r *round) steps(o *v1alpha1.Ownership, now time.Time) {
	next := o.Epoch.Number > r.epoch
	if o.FenceRequest != nil {
		r.Reach(rounds.Asked, now)
	}
	switch planned := r.fault.name == rounds.Planned; {
	case planned && (o.Primary.Phase == v1alpha1.PrimaryReleased || next):
		r.Reach(rounds.Released, now)
	case !planned && (o.Primary.Phase == v1alpha1.PrimaryFenced || next):
		r.Reach(rounds.Fenced, now)
	}
	if o.Primary.Phase == v1alpha1.PrimaryActive && next {
		r.Reach(rounds.Promoted, now)
	}
}

// nextPods notes the steps of the pods after the first one: bound is the name of the step at which one has a node.
func nextPods(pods watch.Interface, first types.UID, bound string, s *rounds.Stations) {
	for change := range pods.ResultChan() {
		now, is := change.Object.(*corev1.Pod)
		if !is || now.UID == first {
			continue
		}
		if now.Spec.NodeName != "" {
			s.Reach(bound, time.Now())
		}
		if cluster.Running(now) {
			s.Reach(rounds.Runs, time.Now())
		}
	}
}

// changes watches one object.
func (b *bench) changes(ctx context.Context, list client.ObjectList, of client.Object) (watch.Interface, error) {
	w, err := b.Watch(ctx, list, client.InNamespace(of.GetNamespace()),
		client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", of.GetName())})
	if err == nil {
		context.AfterFunc(ctx, w.Stop)
	}
	return w, err
}
