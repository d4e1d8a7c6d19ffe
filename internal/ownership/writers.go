package ownership

import (
	"cmp"
	"slices"

	"berth.dev/berth/internal/lineage"
)

// Writer is a node's right to write a disk that several nodes write.
type Writer struct {
	Primary      Primary
	Epoch        lineage.Epoch
	FenceRequest FenceRequest
}

// On returns the record as the rules look at it when they decide about the node as a writer: the node is the
// primary, with its own epoch, and has none if it never opened one. The rules of a disk with one writer
// so decide about each of several. Of a volume with one writer it is the record itself.
func (v *Volume) On(node string) *Volume {
	if v == nil || !v.Sharing.ManyWriters || v.Primary.Node == node {
		return v
	}
	mine, _ := v.writer(node)
	mine.Primary.Node = node
	return v.with(func(n *Volume) {
		n.setWriters(append(v.others(node), v.top()))
		n.Primary, n.Epoch, n.FenceRequest = mine.Primary, mine.Epoch, mine.FenceRequest
	})
}

// Stored returns the record as it is written. The writer with the newest epoch is the primary, so that the number
// of an epoch never falls. A writer whose node has no entry any more is forgotten, unless its epoch is open.
func (v *Volume) Stored() *Volume {
	if !v.Sharing.ManyWriters {
		return v
	}
	newest := v.top()
	for _, w := range v.Writers {
		if w.Epoch.Number > newest.Epoch.Number {
			newest = w
		}
	}
	return v.with(func(n *Volume) {
		left := slices.DeleteFunc(append(slices.Clone(v.Writers), v.top()), func(w Writer) bool {
			_, has := v.Replica(w.Primary.Node)
			return w.Epoch == newest.Epoch || w.Epoch.IsZero() || !has && !w.Primary.Phase.Open()
		})
		n.setWriters(left)
		n.Primary, n.Epoch, n.FenceRequest = newest.Primary, newest.Epoch, newest.FenceRequest
	})
}

// Writing are the nodes that have an open epoch, in order of their names.
func (v *Volume) Writing() (nodes []string) {
	for _, w := range v.AllWriters() {
		if w.Primary.Phase.Open() {
			nodes = append(nodes, w.Primary.Node)
		}
	}
	return nodes
}

// AllWriters are the nodes that have opened an epoch, the primary among them, in order of their names.
func (v *Volume) AllWriters() []Writer {
	all := slices.DeleteFunc(append(slices.Clone(v.Writers), v.top()), func(w Writer) bool { return w.Primary.Node == "" })
	slices.SortFunc(all, byNode)
	return all
}

func byNode(a, b Writer) int { return cmp.Compare(a.Primary.Node, b.Primary.Node) }

// executes tells whether the node is to shut a writer out.
func (v *Volume) executes(node string) bool {
	return slices.ContainsFunc(v.AllWriters(), func(w Writer) bool { return w.FenceRequest.Executor == node })
}

// awaits tells whether a writer is still to be fenced by that request.
func (v *Volume) awaits(r FenceRequest) bool {
	return slices.ContainsFunc(v.AllWriters(), func(w Writer) bool { return w.Primary.Phase.Open() && w.FenceRequest == r })
}

func (v *Volume) top() Writer {
	return Writer{Primary: v.Primary, Epoch: v.Epoch, FenceRequest: v.FenceRequest}
}

// writer returns the node's writer of those besides the primary.
func (v *Volume) writer(node string) (Writer, bool) {
	for _, w := range v.Writers {
		if w.Primary.Node == node {
			return w, true
		}
	}
	return Writer{}, false
}

func (v *Volume) others(node string) []Writer {
	return slices.DeleteFunc(slices.Clone(v.Writers), func(w Writer) bool { return w.Primary.Node == node })
}

func (v *Volume) setWriters(w []Writer) {
	slices.SortFunc(w, byNode)
	v.Writers = w
	if len(w) == 0 {
		v.Writers = nil
	}
}

// newest is the highest number of an epoch in the record.
func (v *Volume) newest() uint64 {
	highest := v.Epoch.Number
	for _, w := range v.Writers {
		highest = max(highest, w.Epoch.Number)
	}
	return highest
}

// lacks tells whether a node has opened an epoch, and not given it up, that the record does not know: the record comes
// from a backup. An epoch whose key the record has issued was over when its writer was forgotten. One whose number
// the record has given to another node since can have no place in it any more: it is lost.
func (v *Volume) lacks(node string, c *Copy) bool {
	known := v.On(node).Epoch.Number >= c.Opened.Number || slices.Contains(v.Keys, Key{Node: node, Epoch: c.Opened})
	taken := slices.ContainsFunc(v.AllWriters(), func(w Writer) bool { return w.Epoch.Number == c.Opened.Number })
	return !known && !taken && !c.GaveUp(c.Opened)
}

// open are the keys of all open epochs, and those with which standbys shut a writer of them out.
func (v *Volume) open() (keys []RawKey) {
	for _, w := range v.AllWriters() {
		if !w.Primary.Phase.Open() {
			continue
		}
		keys = append(keys, Key{Node: w.Primary.Node, Epoch: w.Epoch}.Raw())
		if r := w.FenceRequest; r.Epoch == w.Epoch {
			keys = append(keys, Key{Node: r.Executor, Epoch: r.Epoch, Fence: true}.Raw())
		}
	}
	return keys
}

// stored is the action with the record as it is written.
func (a Action) stored() Action {
	if a.Next != nil {
		a.Next = a.Next.Stored()
	}
	return a
}

// Oversee is the controller's answer about a volume. Where several nodes write, the rules decide about each in turn:
// about has the facts of a writer. A record from a backup is mended before anything else happens, and the first action
// that writes goes before those that wait.
func Oversee(rules Chain[ControllerFacts], f *ControllerFacts, about func(f *ControllerFacts, writer string)) Action {
	var writes, waits Action
	for _, node := range f.writers() {
		g := *f
		g.Record = f.Record.On(node)
		about(&g, node)
		switch a := rules.Decide(&g); {
		case a.Verb == Record && a.Reason == RecordBehind:
			return a.stored()
		case a.Verb == Record && writes.Verb != Record:
			writes = a
		case waits.Verb == Nothing:
			waits = a
		}
	}
	if writes.Verb == Record {
		return writes.stored()
	}
	return waits
}

// writers are the nodes about which a controller decides: the primary, and where several nodes write, those with an
// open epoch, in the record or by their own word. The last has no name and no epoch: what the volume needs besides
// does not wait for a writer that is lost.
func (f *ControllerFacts) writers() []string {
	v := f.Record
	nodes := []string{v.Primary.Node}
	if !v.Sharing.ManyWriters {
		return nodes
	}
	nodes = append(nodes, v.Writing()...)
	for i := range f.Peers {
		if c := &f.Peers[i].Copy; !c.GaveUp(c.Opened) {
			nodes = append(nodes, f.Peers[i].Node)
		}
	}
	slices.Sort(nodes)
	return append(slices.Compact(nodes), "")
}
