package shell

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/provision/shared/simdisk"
)

// end is the end of a write in the content of a head: the text of all its writes in their order. So it tells the truth
// about data, whatever the names of points and epochs say.
const end = ";"

// truth is what is true of a volume with copies.
type truth struct {
	// points are the contents of points, and taken is when each was. from is where an epoch began, and last the content after its last write.
	points map[lineage.Point]string
	taken  map[lineage.Point]time.Time
	from   map[lineage.Epoch]lineage.Point
	last   map[lineage.Epoch]string
	writer map[lineage.Epoch]string
	// released are the epochs that were given up.
	released map[lineage.Epoch]bool
}

// of returns the truth of a volume. It is called with the oracle's lock.
func (o *oracle) of(volume string) *truth {
	if o.truths[volume] == nil {
		o.truths[volume] = &truth{
			points: map[lineage.Point]string{}, taken: map[lineage.Point]time.Time{}, from: map[lineage.Epoch]lineage.Point{}, last: map[lineage.Epoch]string{},
			writer: map[lineage.Epoch]string{}, released: map[lineage.Epoch]bool{},
		}
	}
	return o.truths[volume]
}

func pointOf(p *v1alpha1.Point) lineage.Point {
	if p == nil {
		return lineage.Point{}
	}
	return lineage.Point{Epoch: lineage.Epoch{Number: uint64(p.Epoch.Number), ID: p.Epoch.ID}, Seq: uint64(p.Seq)} //nolint:gosec // by the schema
}

// headWritten judges a write that reached a head. It is called with the world's lock.
func (o *oracle) headWritten(h *head, c simdisk.Write) {
	content := h.m.pool.Read(h.v.name)
	o.mu.Lock()
	defer o.mu.Unlock()
	t := o.of(h.v.name)
	if node, known := t.writer[c.Epoch]; known && node != h.m.name {
		o.fails("epoch %v is written by %s and %s", c.Epoch, node, h.m.name)
	}
	if t.released[c.Epoch] && !o.back[h.v.name] {
		o.fails("a pod on %s writes in epoch %v, which is released", h.m.name, c.Epoch)
	}
	t.writer[c.Epoch], t.last[c.Epoch] = h.m.name, content
}

// names judges a point that was taken: it has one content, on all nodes and for ever.
func (o *oracle) names(p *process, volume string, point lineage.Point, content string) {
	o.w.tells(p.name, "keeps the head of %s as point %v", o.w.short(volume), point)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.counts["points"]++
	t := o.of(volume)
	if was, known := t.points[point]; known && was != content {
		o.fails("point %v has the content %q, and had %q", point, tail(content), tail(was))
	}
	t.points[point], t.taken[point] = content, time.Now()
}

// arrives judges a point that a stream brought.
func (o *oracle) arrives(p *process, volume string, point lineage.Point) {
	contents := p.m.pool.Contents(volume)
	o.w.tells(p.name, "has received point %v of %s", point, o.w.short(volume))
	o.mu.Lock()
	defer o.mu.Unlock()
	o.counts["streams"]++
	if want, known := o.of(volume).points[point]; !known || !slices.Contains(contents, want) {
		o.fails("point %v arrives at %s with another content", point, p.m.name)
	}
}

// survives judges what is left of all writes after a change: each that a pod was told of is in a head, a point or a
// branch somewhere.
func (o *oracle) survives(p *process, what, volume string) {
	var all []string
	for _, m := range o.w.machines {
		all = append(all, m.pool.Contents(volume)...)
	}
	there := map[string]bool{}
	var read []string
	slices.SortFunc(all, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	for _, content := range all {
		if slices.ContainsFunc(read, func(longer string) bool { return strings.HasPrefix(longer, content) }) {
			continue
		}
		read = append(read, content)
		for write := range strings.SplitSeq(content, end) {
			there[write] = true
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, write := range o.acked[volume] {
		if !there[write] {
			o.fails("after %s by %s the write %q is nowhere", what, p.name, write)
			return
		}
	}
}

// tail is the end of a content, for a story.
func tail(content string) string { return content[max(0, len(content)-60):] }

// copied judges a record of copies that was written. heard are the nodes whose word counts. It is called with the
// oracle's lock.
func (o *oracle) copied(who string, was, is *v1alpha1.Ownership, volume string, heard map[string]bool) {
	t, e, recovery := o.of(volume), epochOf(is), pointOf(is.RecoveryPoint)
	if _, known := t.from[e]; is.Epoch != was.Epoch && !known { // a record that is mended says it again
		t.from[e] = recovery
	}
	switch {
	case is.Epoch != was.Epoch, is.Primary.Phase == was.Primary.Phase, o.back[volume]:
	case is.Primary.Phase == v1alpha1.PrimaryReleased:
		t.released[e] = true
		if last, wrote := t.last[e]; wrote && t.points[recovery] != last {
			o.fails("%s releases epoch %v at %v with %q, and its last write made %q", who, e, recovery, tail(t.points[recovery]), tail(last))
		}
	case is.Primary.Phase == v1alpha1.PrimaryFenced:
		kept, began := t.points[recovery], t.points[t.from[e]]
		for _, r := range was.Replicas {
			p := pointOf(r.Point)
			part := p.Epoch == e || strings.HasPrefix(began, t.points[p])
			if heard[r.Node] && r.Node != was.Primary.Node && part && !strings.HasPrefix(kept, t.points[p]) {
				o.fails("%s fences epoch %v back to %v, and %s has %v", who, e, recovery, r.Node, p)
			}
		}
	}
}

// heard are the machines that have answered everything for a while.
func (w *world) heard() map[string]bool {
	all := map[string]bool{}
	for _, m := range w.machines {
		a := m.agentNow()
		all[m.name] = m.runs() && a != nil && !a.p.isDead() && time.Since(a.p.began) > hearing && w.quiet(m)
	}
	return all
}

// quiet says whether no fault has hit a machine, or what all machines share, for a while.
func (w *world) quiet(m *machine) (is bool) {
	w.locked(func() {
		is = true
		for _, hit := range []time.Time{w.hit, m.hit, m.woke} {
			is = is && time.Since(hit) > hearing
		}
	})
	return is
}

// hits notes whom an event hits, and until when.
func (w *world) hits(m *machine, e event) {
	until := time.Now().Add(e.lasts)
	w.locked(func() {
		switch e.what {
		case powerOff, agentDies, guardDies, kubeletDies, sanCut, relogin, targetRestart, podMoves:
			m.hit = until
		default:
			w.hit = until
		}
	})
}

// hearing is for how long a machine must have had no trouble before what it reported must count.
const hearing = 45 * time.Second

// fresh is how old the newest point of a copy may be while a pod writes: two intervals, and the time of a stream.
const fresh = 150 * time.Second

// same says what is missing until a volume has as many copies as it is to have that follow its pod; empty if nothing is.
func (o *oracle) same(v *volume, r *v1alpha1.Ownership, on *machine) string {
	head, same := on.pool.Read(v.name), 0
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range r.Replicas {
		if m := o.w.machine(e.Node); m != nil && e.State == v1alpha1.OwnedReady {
			c, t := m.copyOf(v.name), o.of(v.name)
			if content, known := t.points[c.Tip()]; known && strings.HasPrefix(head, content) && time.Since(t.taken[c.Tip()]) < fresh {
				same++
			}
		}
	}
	if same < o.w.plan.shares {
		return fmt.Sprintf("%s: %d copies of %d are what the pod has%s", v.short, same, o.w.plan.shares, entries(r))
	}
	return ""
}

// judgesHead judges the content of a head that is mounted. It is called with the oracle's lock.
func (o *oracle) judgesHead(k *kernel, e lineage.Epoch) {
	t := o.of(k.v.name)
	want, wrote := t.last[e]
	if !wrote {
		want = t.points[t.from[e]]
	}
	if got := k.m.pool.Read(k.v.name); got != want {
		o.fails("%s mounts %q in epoch %v, which has %q from %v", k.m.name, tail(got), e, tail(want), t.from[e])
	}
}
