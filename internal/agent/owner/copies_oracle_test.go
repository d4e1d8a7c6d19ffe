package owner_test

import (
	"fmt"
	"strings"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/lineage"
)

// copyOracle judges with code of its own. The content of a volume is the text of all its writes in their order,
// so it tells the truth about data, whatever the names of points and epochs say.
type copyOracle struct {
	violation string
	// active are the epochs that the record once called Active, with their node, and from where they began.
	active map[string]string
	from   map[string]lineage.Point
	// contents are those of points, and last is the content after the last write in an epoch.
	contents map[lineage.Point]string
	last     map[lineage.Epoch]string
	writer   map[lineage.Epoch]string
	// written are all writes that a pod was told are done.
	written []string

	mounts, takeovers, fences, released, branches, received int
}

func newCopyOracle() copyOracle {
	return copyOracle{
		active: map[string]string{}, from: map[string]lineage.Point{}, contents: map[lineage.Point]string{},
		last: map[lineage.Epoch]string{}, writer: map[lineage.Epoch]string{},
	}
}

func (o *copyOracle) fail(format string, args ...any) {
	if o.violation == "" {
		o.violation = fmt.Sprintf(format, args...)
	}
}

func epochOf(e v1alpha1.Epoch) lineage.Epoch {
	return lineage.Epoch{Number: uint64(e.Number), ID: e.ID}
}

func pointOf(p *v1alpha1.Point) lineage.Point {
	if p == nil {
		return lineage.Point{}
	}
	return lineage.Point{Epoch: epochOf(p.Epoch), Seq: uint64(p.Seq)}
}

// named notes the content of a point. A point has one content, on all nodes and for ever.
func (o *copyOracle) named(p lineage.Point, content string) {
	if was, known := o.contents[p]; known && was != content {
		o.fail("point %v has the content %q, and had %q", p, content, was)
	}
	o.contents[p] = content
}

// wrote lets a pod write, and judges who else writes in that epoch.
func (f *fleet) wrote(k *keeper, text string) {
	if node, known := f.writer[k.epoch]; known && node != k.name {
		f.fail("epoch %v is written by %s and %s", k.epoch, node, k.name)
	}
	f.writer[k.epoch] = k.name
	content := k.disks.Read(theVolume) + text
	k.disks.Write(theVolume, content)
	f.last[k.epoch] = content
	f.written = append(f.written, text)
	v := f.current().Status.Ownership
	if epochOf(v.Epoch) == k.epoch && v.Primary.Phase == v1alpha1.PrimaryReleased {
		f.fail("%s writes in epoch %v, which is released", k.name, k.epoch)
	}
}

// judge judges what is left of all writes after an effect: each is in a head, a point or a branch somewhere.
func (f *fleet) judge(k *keeper, effect string) {
	switch effect {
	case "RollBack", "Drop", "Receive", "Destroy", "Writable", "Abort":
	default:
		return
	}
	var all strings.Builder
	for _, n := range f.keepers {
		for _, c := range n.disks.Contents(theVolume) {
			all.WriteString(c)
		}
	}
	text := all.String()
	for _, w := range f.written {
		if !strings.Contains(text, w) {
			f.fail("after %s of %s the write %s is nowhere", effect, k.name, w)
			return
		}
	}
}

// arrived judges a point that a stream brought.
func (f *fleet) arrived(k *keeper, p lineage.Point) {
	tip := false
	for _, c := range k.disks.Contents(theVolume) {
		tip = tip || c == f.contents[p]
	}
	if !tip {
		f.fail("point %v arrived at %s with another content than %q", p, k.name, f.contents[p])
	}
}

// judgeRecord notes what a record says, and judges a release and a fence.
func (o *copyOracle) judgeRecord(f *fleet, who string, old, v *v1alpha1.Ownership) {
	e, recovery := epochOf(v.Epoch), pointOf(v.RecoveryPoint)
	switch v.Primary.Phase {
	case v1alpha1.PrimaryActive:
		if node, known := o.active[v.Epoch.ID]; known && node != v.Primary.Node {
			o.fail("epoch %s is %s's and %s's", v.Epoch.ID, node, v.Primary.Node)
		}
		o.active[v.Epoch.ID] = v.Primary.Node
	case v1alpha1.PrimaryPreparing:
		if v.Epoch != old.Epoch {
			o.takeovers++
			o.from[v.Epoch.ID] = recovery
		}
	case v1alpha1.PrimaryFenced:
		if old.Primary.Phase != v.Primary.Phase {
			o.fences++
			o.judgeFence(f, old, recovery)
		}
	case v1alpha1.PrimaryReleased:
		if old.Primary.Phase == v.Primary.Phase {
			return
		}
		o.released++
		if last, wrote := o.last[e]; wrote && o.contents[recovery] != last {
			o.fail("%s releases epoch %v at %v with %q, and its last write made %q", who, e, recovery, o.contents[recovery], last)
		}
	}
}

// judgeFence: what replicas that answer have reported of the volume is covered by the point from which it goes on.
// A point of an earlier epoch that was cut off is not part of the volume.
func (o *copyOracle) judgeFence(f *fleet, old *v1alpha1.Ownership, recovery lineage.Point) {
	e := epochOf(old.Epoch)
	kept, began := o.contents[recovery], o.contents[o.from[e.ID]]
	for _, r := range old.Replicas {
		p := pointOf(r.Point)
		part := p.Epoch == e || strings.HasPrefix(began, o.contents[p])
		for _, k := range f.keepers {
			if k.name == r.Node && k.name != old.Primary.Node && k.answers() && part && !strings.HasPrefix(kept, o.contents[p]) {
				o.fail("the fence of epoch %v goes back to %v, and %s has %v", e, recovery, r.Node, p)
			}
		}
	}
}

// judgeMount judges a mount at the moment when it happens.
func (f *fleet) judgeMount(k *keeper) {
	f.mounts++
	c, e := k.state(), k.epoch
	got, want := k.disks.Read(theVolume), f.contents[f.from[e.ID]]
	switch {
	case c.Promise.Epoch != e:
		f.fail("%s mounts in epoch %v, and keeps that it promised %v", k.name, e, c.Promise.Epoch)
	case e.Number <= c.Closed.Number:
		f.fail("%s mounts in epoch %v, and has given up %v", k.name, e, c.Closed)
	case k.guarded != e:
		f.fail("%s mounts in epoch %v, and its guard knows of %v", k.name, e, k.guarded)
	case f.active[e.ID] != k.name:
		f.fail("%s mounts in epoch %v, and no record ever called that Active for it", k.name, e)
	case got != want:
		f.fail("%s mounts %q in epoch %v, which begins at %v with %q", k.name, got, e, f.from[e.ID], want)
	}
}

// judgeGiven judges an unmount that was answered with success.
func (f *fleet) judgeGiven(k *keeper) {
	if !k.epoch.IsZero() {
		f.fail("%s has unstaged the volume, and it is mounted", k.name)
	}
	p := f.current().Status.Ownership.Primary
	if p.Node == k.name && (p.Phase == v1alpha1.PrimaryActive || p.Phase == v1alpha1.PrimaryPreparing) {
		f.fail("%s has unstaged the volume, and the record says that it owns it", k.name)
	}
}
