package explore

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
)

// renaming gives a world other names: nodes change places, epochs get other ids,
// contents other marks, boots other numbers, and the clock shows another time.
type renaming struct {
	to       [maxNodes]int
	later    time.Duration
	contents map[*content]*content
	versions map[*version]*version
	issued   []ownership.Key // every key that a node of the world may have used
}

func newRenaming(to [maxNodes]int) *renaming {
	return &renaming{to: to, later: 1000 * time.Hour, contents: map[*content]*content{nil: nil}, versions: map[*version]*version{nil: nil}}
}

func (r *renaming) node(name string) string {
	if i := indexOf(name); i >= 0 {
		return names[r.to[i]]
	}
	return name
}

func (r *renaming) boot(name string) string {
	n, err := strconv.Atoi(strings.TrimPrefix(name, "boot"))
	if err != nil {
		return name
	}
	return bootNames[n+1]
}

func (r *renaming) time(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(r.later)
}

func (r *renaming) epoch(e lineage.Epoch) lineage.Epoch {
	if e.ID != "" && e != wiped {
		e.ID = fmt.Sprintf("renamed-%s", e.ID)
	}
	return e
}

func (r *renaming) point(p lineage.Point) lineage.Point {
	p.Epoch = r.epoch(p.Epoch)
	return p
}

func (r *renaming) points(in []lineage.Point) (out []lineage.Point) {
	for _, p := range in {
		out = append(out, r.point(p))
	}
	return out
}

func (r *renaming) lineage(in lineage.Lineage) (out lineage.Lineage) {
	for _, b := range in {
		out = append(out, lineage.Branch{Epoch: r.epoch(b.Epoch), From: r.point(b.From)})
	}
	return out
}

func (r *renaming) losses(in []ownership.Loss) (out []ownership.Loss) {
	for _, l := range in {
		out = append(out, ownership.Loss{Epoch: r.epoch(l.Epoch), Kept: r.point(l.Kept), Known: r.point(l.Known)})
	}
	return out
}

func (r *renaming) promise(p ownership.Promise) ownership.Promise {
	return ownership.Promise{Epoch: r.epoch(p.Epoch), Primary: r.node(p.Primary), Boot: r.boot(p.Boot),
		Lineage: r.lineage(p.Lineage), Losses: r.losses(p.Losses)}
}

func (r *renaming) key(k ownership.Key) ownership.Key {
	return ownership.Key{Node: r.node(k.Node), Epoch: r.epoch(k.Epoch), Fence: k.Fence}
}

func (r *renaming) volume(v *ownership.Volume) *ownership.Volume {
	if v == nil {
		return nil
	}
	n := *v
	n.Epoch, n.RecoveryPoint, n.Lineage, n.Losses = r.epoch(v.Epoch), r.point(v.RecoveryPoint), r.lineage(v.Lineage), r.losses(v.Losses)
	n.Primary.Node, n.Primary.Boot = r.node(v.Primary.Node), r.boot(v.Primary.Boot)
	n.FenceRequest = ownership.FenceRequest{Executor: r.node(v.FenceRequest.Executor), Epoch: r.epoch(v.FenceRequest.Epoch)}
	n.Failover.Approved, n.ExpireAt = r.point(v.Failover.Approved), r.time(v.ExpireAt)
	n.Replicas = nil
	for _, e := range v.Replicas {
		n.Replicas = append(n.Replicas, ownership.Replica{Node: r.node(e.Node), State: e.State, Point: r.point(e.Point),
			Unstaged: r.epoch(e.Unstaged), Fenced: r.epoch(e.Fenced), Tries: e.Tries, RetryAt: r.time(e.RetryAt)})
	}
	n.Writers = nil
	for _, o := range v.Writers {
		n.Writers = append(n.Writers, ownership.Writer{Primary: ownership.Primary{Node: r.node(o.Primary.Node), Boot: r.boot(o.Primary.Boot), Phase: o.Primary.Phase},
			Epoch: r.epoch(o.Epoch), FenceRequest: ownership.FenceRequest{Executor: r.node(o.FenceRequest.Executor), Epoch: r.epoch(o.FenceRequest.Epoch)}})
	}
	slices.SortFunc(n.Writers, func(a, b ownership.Writer) int { return strings.Compare(a.Primary.Node, b.Primary.Node) })
	n.Keys = nil
	for _, k := range v.Keys {
		n.Keys = append(n.Keys, r.key(k))
	}
	slices.SortFunc(n.Replicas, func(a, b ownership.Replica) int { return strings.Compare(a.Node, b.Node) })
	return &n
}

func (r *renaming) version(v *version) *version {
	if n, ok := r.versions[v]; ok {
		return n
	}
	n := &version{volume: r.volume(v.volume), rv: v.rv + 7, before: r.version(v.before)}
	r.versions[v] = n
	return n
}

func (r *renaming) content(c *content) *content {
	if n, ok := r.contents[c]; ok {
		return n
	}
	n := &content{parent: r.content(c.parent), write: c.write + 100, depth: c.depth, hash: c.hash + 1, size: c.size}
	r.contents[c] = n
	return n
}

func (r *renaming) all(in []*content) (out []*content) {
	for _, c := range in {
		out = append(out, r.content(c))
	}
	return out
}

func (r *renaming) epochs(in []lineage.Epoch) (out []lineage.Epoch) {
	for _, e := range in {
		out = append(out, r.epoch(e))
	}
	return out
}

func (r *renaming) pending(p *pending) *pending {
	if p == nil {
		return nil
	}
	n, a := *p, p.action
	n.read = r.version(p.read)
	for i := range p.wrecked {
		n.wrecked[r.to[i]] = p.wrecked[i]
	}
	n.action.Next, n.action.Promise, n.action.From = r.volume(a.Next), r.promise(a.Promise), r.node(a.From)
	n.action.Base, n.action.To, n.action.Points = r.point(a.Base), r.point(a.To), r.points(a.Points)
	n.action.Key, n.action.Until = r.key(a.Key), r.time(a.Until)
	n.action.Expect = r.raw(a.Expect)
	n.wanted, n.waiting, n.leaving, n.unseen, n.deleted = r.set(p.wanted), r.set(p.waiting), r.set(p.leaving), r.set(p.unseen), r.set(p.deleted)
	n.decided += r.later
	return &n
}

func (r *renaming) machine(n node) node {
	c := &n.copy
	c.Promise, c.Opened, c.Closed, c.Flushed = r.promise(c.Promise), r.epoch(c.Opened), r.epoch(c.Closed), r.epoch(c.Flushed)
	c.Points, c.Preserved, c.DestroyAt = r.points(c.Points), r.point(c.Preserved), r.time(c.DestroyAt)
	var holds []ownership.Hold
	for _, h := range c.Holds {
		holds = append(holds, ownership.Hold{For: r.node(h.For), Point: r.point(h.Point), Until: r.time(h.Until)})
	}
	c.Holds = holds
	n.data, n.head, n.branches, n.pending = r.all(n.data), r.content(n.head), r.all(n.branches), r.pending(n.pending)
	n.boot, n.leased = n.boot+1, n.leased+1
	n.late = r.epoch(n.late)
	n.members, n.sets = r.set(n.members), r.sets(n.sets)
	if n.poweroff > 0 {
		n.poweroff++
	}
	return n
}

// world is the renamed image.
func (r *renaming) world(w *World) *World {
	n := *w
	n.now += r.later
	for _, e := range append(slices.Clip(w.truth.issued), wiped) {
		for _, node := range names[:maxNodes] {
			r.issued = append(r.issued, ownership.Key{Node: node, Epoch: e}, ownership.Key{Node: node, Epoch: e, Fence: true})
		}
	}
	n.server.current = r.version(w.server.current)
	r.disk(w, &n)
	for i := range w.nodes {
		n.nodes[r.to[i]] = r.machine(w.nodes[i])
	}
	for k := range w.ctl {
		n.ctl[k].pending, n.ctl[k].blocked = r.pending(w.ctl[k].pending), r.point(w.ctl[k].blocked)
		for i := range w.nodes {
			n.ctl[k].lapsed[r.to[i]], n.ctl[k].steady[r.to[i]] = w.ctl[k].lapsed[i], w.ctl[k].steady[i]
			n.ctl[k].lostFor[r.to[i]] = w.ctl[k].lostFor[i]
		}
	}
	n.streams = nil
	for _, s := range slices.Backward(w.streams) {
		h := ownership.Stream{Promise: r.promise(s.header.Promise), Base: r.point(s.header.Base), Target: r.point(s.header.Target), Size: s.header.Size}
		n.streams = append(n.streams, stream{from: r.to[s.from], to: r.to[s.to], header: h, base: r.content(s.base), target: r.content(s.target)})
	}
	r.links(w, &n)
	t, o := &n.truth, &w.truth
	t.last, t.recalled, t.epoch = r.content(o.last), r.content(o.recalled), r.epoch(o.epoch)
	t.issued, t.fenced, t.released, t.log = r.epochs(o.issued), r.epochs(o.fenced), r.epochs(o.released), r.epochs(o.log)
	t.named = nil
	for _, p := range o.named {
		t.named = append(t.named, namedPoint{point: r.point(p.point), data: r.content(p.data)})
	}
	return &n
}

func (r *renaming) disk(w, n *World) {
	d, o := &n.disk, &w.disk
	n.slots = slots{taken: r.set(w.slots.taken), waiting: r.set(w.slots.waiting)}
	n.truth.usedAt += r.later
	n.truth.forsaken = r.set(w.truth.forsaken)
	d.holder = r.key(o.holder)
	if o.at > 0 {
		d.at = r.to[o.at-1] + 1
	}
	for i := range r.to {
		d.links[r.to[i]], d.keys[r.to[i]], d.old[r.to[i]] = o.links[i], r.key(o.keys[i]), r.key(o.old[i])
	}
}

// set renames a set of nodes, a bit each.
func (r *renaming) sets(in uint16) (out uint16) {
	for set := range uint8(1 << maxNodes) {
		if in&(1<<set) != 0 {
			out |= 1 << r.set(set)
		}
	}
	return out
}

func (r *renaming) set(in uint8) (out uint8) {
	for i := range r.to {
		if in&(1<<i) != 0 {
			out |= 1 << r.to[i]
		}
	}
	return out
}

// raw renames a key as a disk stores it: one that was issued, or that stands for none.
func (r *renaming) raw(in ownership.RawKey) ownership.RawKey {
	for _, k := range r.issued {
		if k.Raw() == in {
			return r.key(k).Raw()
		}
	}
	return in
}

func (r *renaming) links(w, n *World) {
	end := func(i int) int {
		if i < maxNodes {
			return r.to[i]
		}
		return i
	}
	n.cut = [endpoints]uint16{}
	for i := range w.cut {
		for j := range w.cut {
			if w.cut[i]&(1<<j) != 0 {
				n.cut[end(i)] |= 1 << end(j)
			}
		}
	}
}
