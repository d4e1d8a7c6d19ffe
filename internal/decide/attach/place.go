package attach

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"berth.dev/berth/internal/ownership"
)

// Place is a node as a place for an attachment of a volume.
type Place struct {
	// Refusal says why an attachment does not fit, if it does not.
	Refusal
	// Slots is how many more disks can be attached, as the volume may count them.
	Slots int
	// GiveWay: the volume's attachment there makes way for a pod's volume that waits.
	GiveWay bool
	// MakesRoom: a pod waits there for the volume, and the slots that are free, and those of standbys that make way,
	// are enough for it, once its disk has a free share.
	MakesRoom bool
	// Leaving: the volume's attachment there shall be on another node.
	Leaving bool
	// Rank orders the nodes: the first that fits gets the next standby.
	Rank int
}

// Fits says whether a standby may be attached.
func (p *Place) Fits() bool { return p.Reason == "" }

// Places answers for a volume about nodes. One that the Board does not know may be asked about, too.
func (b *Board) Places(volume string, nodes []string) map[string]Place {
	places := make(map[string]Place, len(nodes))
	if b.volumes[volume] == nil {
		return places
	}
	pods, reach := b.users(volume)
	for _, name := range nodes {
		p := Place{Refusal: b.refuses(name, reach, pods), Leaving: Leaving(b.nodes[name], pods)}
		p.Slots, p.GiveWay = b.slots(volume, name)
		p.MakesRoom = makesRoom(volume, b.free(name), b.uses(name), b.waiting(name), b.volumes)
		places[name] = p
	}
	for rank, name := range b.order(volume, pods, places) {
		p := places[name]
		p.Rank = rank
		places[name] = p
	}
	return places
}

func (b *Board) refuses(node string, reach *nodeaffinity.NodeSelector, pods []*Pod) Refusal {
	n := b.nodes[node]
	if n == nil {
		n = &Node{Name: node}
	}
	return Refuses(n, reach, pods)
}

// staying is how many attachments of a volume are neither on their way out nor on a node that is leaving.
func (b *Board) staying(v *Volume, pods []*Pod) (n int) {
	for node, state := range v.Entries {
		if !going(state) && !Leaving(b.nodes[node], pods) {
			n++
		}
	}
	return n
}

// waiting are the volumes for which a pod waits on the node, in the order in which they get slots.
func (b *Board) waiting(node string) []string {
	queue, known := b.queues[node]
	if !known {
		queue = b.queue(node)
		b.queues[node] = queue
	}
	return queue
}

func (b *Board) queue(node string) (names []string) {
	for uid := range b.onNode[node] {
		for _, volume := range b.volumesOf(b.pods[uid]) {
			if _, has := b.volumes[volume].Entries[node]; !has {
				names = append(names, volume)
			}
		}
	}
	slices.SortFunc(names, func(x, y string) int {
		if a, c := b.volumes[x].shared(), b.volumes[y].shared(); a != c {
			return order(a)
		}
		return cmp.Compare(x, y)
	})
	return slices.Compact(names)
}

// order puts what is true first.
func order(first bool) int {
	if first {
		return -1
	}
	return 1
}

// free is how many slots of the node have no attachment.
func (b *Board) free(node string) int {
	if n := b.nodes[node]; n != nil {
		return n.slots() - len(b.attached[node])
	}
	return 0
}

// slots is how many slots the volume may count on a node, and whether its attachment there makes way.
func (b *Board) slots(volume, node string) (slots int, yields bool) {
	free, waiting := b.free(node), b.waiting(node)
	before := slices.Index(waiting, volume)
	if before < 0 {
		before = len(waiting)
	}
	ready := slices.IndexFunc(waiting, func(name string) bool { return !b.volumes[name].shared() })
	if ready < 0 {
		ready = len(waiting)
	}
	if ready > free {
		victim, _ := ownership.Yielding(b.uses(node))
		yields = victim == volume
	}
	return free - before, yields
}

// makesRoom tells whether a volume that waits on a node gets a slot once its disk has a free share. Standbys make way
// for such a volume alone, so the slot cannot come first. Those that wait without a free share stand behind it then.
// room is how many slots of the node are free.
func makesRoom(volume string, room int, uses []ownership.SlotUse, waiting []string, volumes map[string]*Volume) bool {
	for _, u := range uses {
		if going(u.State) || u.Standby && u.Yields {
			room++
		}
	}
	for _, name := range waiting {
		switch {
		case name == volume:
			return room > 0
		case volumes[name].shared():
			room--
		}
	}
	return false
}

// uses are the attachments on a node.
func (b *Board) uses(node string) (uses []ownership.SlotUse) {
	wanted := map[string]bool{}
	for uid := range b.onNode[node] {
		for _, volume := range b.volumesOf(b.pods[uid]) {
			wanted[volume] = true
		}
	}
	for name := range b.attached[node] {
		v := b.volumes[name]
		standby := !slices.Contains(v.Owners, node) && !slices.Contains(v.Executors, node) && !wanted[name] && !v.Deleting
		uses = append(uses, ownership.SlotUse{
			Volume: name, Standby: standby, Yields: v.Yields, State: v.Entries[node], Others: max(0, v.counting()-1),
		})
	}
	return uses
}

// order is the order in which nodes are tried for the next standby of a volume. Its first node keeps most
// possibilities for the volumes that pods use together with this one.
func (b *Board) order(volume string, pods []*Pod, places map[string]Place) (names []string) {
	together := b.together(volume, pods)
	zones := map[string]int{}
	for node, state := range b.volumes[volume].Entries {
		if zone := zone(b.nodes[node]); zone != "" && !going(state) && !Leaving(b.nodes[node], pods) {
			zones[zone]++
		}
	}
	all := make([]tried, 0, len(places))
	for node := range places {
		all = append(all, tried{node, b.count(together, node), zones[zone(b.nodes[node])], places[node].Slots})
	}
	slices.SortFunc(all, tried.compare)
	for i := range all {
		names = append(names, all[i].node)
	}
	if len(together) == 1 {
		return names
	}
	t := b.table(together, names)
	if best := t.next(slices.Index(together, volume)); best > 0 {
		first := names[best]
		names = slices.Insert(slices.Delete(names, best, best+1), 0, first)
	}
	return names
}

// tried is a node that is tried for a standby.
type tried struct {
	node string
	// has is how many of the volumes that are used together are on it, and zone how many replicas of this one
	// are in its zone.
	has, zone, slots int
}

func (x tried) compare(y tried) int {
	return cmp.Or(cmp.Compare(y.has, x.has), cmp.Compare(x.zone, y.zone), cmp.Compare(y.slots, x.slots), cmp.Compare(x.node, y.node))
}

// count is how many of the volumes have an attachment on the node that stays.
func (b *Board) count(volumes []string, node string) (n int) {
	for _, name := range volumes {
		if state, is := b.volumes[name].Entries[node]; is && !going(state) {
			n++
		}
	}
	return n
}

// zone is the zone of a node, empty if it has none or is not known.
func zone(n *Node) string {
	if n == nil {
		return ""
	}
	return n.Labels[corev1.LabelTopologyZone]
}

// together are the volumes that pods use with this one, and the volume itself, in order.
func (b *Board) together(volume string, pods []*Pod) []string {
	names := []string{volume}
	for _, p := range pods {
		names = append(names, b.volumesOf(p)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// table is what is possible for volumes that are used together.
func (b *Board) table(volumes, nodes []string) *table {
	t := &table{free: make([]int, len(nodes)), members: make([]member, len(volumes))}
	for j, node := range nodes {
		t.free[j] = max(0, b.free(node)-len(b.waiting(node)))
	}
	for i, name := range volumes {
		v, m := b.volumes[name], &t.members[i]
		pods, reach := b.users(name)
		m.has, m.may = make([]bool, len(nodes)), make([]bool, len(nodes))
		lacking, shares := v.Factor-b.staying(v, pods), v.MaxShares-len(v.Entries)
		for node := range wanted(pods) { // attachments that pods wait for
			if _, has := v.Entries[node]; has {
				continue
			}
			shares--
			if !Leaving(b.nodes[node], pods) {
				lacking--
				m.at(nodes, node)
			}
		}
		// A node that is leaving counts here as well: it gets no further attachment, so no choice depends on it.
		for node, state := range v.Entries {
			if !going(state) {
				m.at(nodes, node)
			}
		}
		m.deficit = max(0, min(lacking, shares))
		for j, node := range nodes {
			_, entry := v.Entries[node]
			m.may[j] = !m.has[j] && !entry && b.refuses(node, reach, pods) == Refusal{}
		}
	}
	return t
}

// at notes that the volume is on a node, or will be.
func (m *member) at(nodes []string, node string) {
	if j := slices.Index(nodes, node); j >= 0 {
		m.has[j] = true
	}
}

// wanted are the nodes that pods are bound to.
func wanted(pods []*Pod) map[string]bool {
	nodes := map[string]bool{}
	for _, p := range pods {
		if p.Node != "" {
			nodes[p.Node] = true
		}
	}
	return nodes
}
