package attach

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"berth.dev/berth/internal/ownership"
)

// Volume is what is known of a shared disk.
type Volume struct {
	Name string
	// Factor is how many attachments it shall have, and MaxShares how many it can have.
	Factor, MaxShares int
	// Yields: its standbys make way for other volumes' primaries.
	Yields bool
	// Deleting: it is meant to be destroyed.
	Deleting bool
	// Owners are the nodes that may write, and Executors those that shut a writer out now.
	Owners, Executors []string
	// Entries are the states of its attachments by node.
	Entries map[string]ownership.State
}

// VolumeOf is what the record of a shared disk says.
func VolumeOf(name string, r *ownership.Volume) Volume {
	v := Volume{
		Name: name, Factor: r.Factor, MaxShares: r.Sharing.MaxShares, Yields: r.Sharing.Yields, Deleting: r.Deleting,
		Entries: make(map[string]ownership.State, len(r.Replicas)),
	}
	for _, w := range r.AllWriters() {
		if w.Primary.Phase.Open() {
			v.Owners, v.Executors = append(v.Owners, w.Primary.Node), append(v.Executors, w.FenceRequest.Executor)
		}
	}
	for i := range r.Replicas {
		v.Entries[r.Replicas[i].Node] = r.Replicas[i].State
	}
	return v
}

// counting is how many attachments are not on their way out.
func (v *Volume) counting() (n int) {
	for _, state := range v.Entries {
		if !going(state) {
			n++
		}
	}
	return n
}

func going(s ownership.State) bool { return s == ownership.Removing || s == ownership.Gone }

// shared tells whether the disk can be attached to one more node.
func (v *Volume) shared() bool { return len(v.Entries) < v.MaxShares }

// Claim is a claim and the PersistentVolume that it is bound to.
type Claim struct {
	UID    types.UID
	Volume string
}

// Bound is a PersistentVolume of a shared disk.
type Bound struct {
	// Handle is the name of the Volume.
	Handle string
	// Claim that it is bound to, as namespace/name, and its UID.
	Claim    string
	ClaimUID types.UID
	// Reach is its required node affinity without labels that Berth moves, nil if any node will do.
	Reach *nodeaffinity.NodeSelector
}

// Board is what is known of a cluster. The zero value is not ready: use New. It is not safe for concurrent
// use.
type Board struct {
	nodes   map[string]*Node
	volumes map[string]*Volume
	pods    map[types.UID]*Pod
	claims  map[string]Claim
	bounds  map[string]Bound
	// The rest follows: which volumes have an entry on a node, which pods are on it (those without a node are on
	// the empty name), which pods use a claim, and which PersistentVolumes stand for a volume.
	attached map[string]map[string]bool
	onNode   map[string]map[types.UID]bool
	using    map[string]map[types.UID]bool
	standing map[string]map[string]bool
	// queues are the volumes that wait on a node, kept until something changes that they follow from.
	queues map[string][]string
}

// New makes a Board that knows nothing.
func New() *Board {
	return &Board{
		nodes: map[string]*Node{}, volumes: map[string]*Volume{}, pods: map[types.UID]*Pod{}, claims: map[string]Claim{}, bounds: map[string]Bound{},
		attached: map[string]map[string]bool{}, onNode: map[string]map[types.UID]bool{}, using: map[string]map[types.UID]bool{}, standing: map[string]map[string]bool{},
		queues: map[string][]string{},
	}
}

// SetNode changes what is known of a node.
func (b *Board) SetNode(name string, change func(*Node)) {
	n := b.nodes[name]
	if n == nil {
		n = &Node{Name: name}
		b.nodes[name] = n
	}
	change(n)
}

// SetVolume takes a volume in place of what was known of it.
func (b *Board) SetVolume(v Volume) {
	b.DropVolume(v.Name)
	b.volumes[v.Name] = &v
	for node := range v.Entries {
		add(b.attached, node, v.Name)
	}
}

// DropVolume forgets a volume.
func (b *Board) DropVolume(name string) {
	if old := b.volumes[name]; old != nil {
		for node := range old.Entries {
			drop(b.attached, node, name)
		}
	}
	delete(b.volumes, name)
	b.requeueVolume(name)
}

// requeueVolume forgets the queues of the nodes with a pod that uses a volume, and requeue those with a pod
// that uses a claim.
func (b *Board) requeueVolume(volume string) {
	for pv := range b.standing[volume] {
		b.requeue(b.bounds[pv].Claim)
	}
}

func (b *Board) requeue(claim string) {
	for uid := range b.using[claim] {
		delete(b.queues, b.pods[uid].Node)
	}
}

// SetPod takes a pod in place of what was known of it.
func (b *Board) SetPod(uid types.UID, p Pod) {
	b.DropPod(uid)
	if p.Ended || len(p.Claims) == 0 {
		return
	}
	b.pods[uid] = &p
	add(b.onNode, p.Node, uid)
	for _, claim := range p.Claims {
		add(b.using, claim, uid)
	}
	delete(b.queues, p.Node)
}

// DropPod forgets a pod.
func (b *Board) DropPod(uid types.UID) {
	if old := b.pods[uid]; old != nil {
		delete(b.queues, old.Node)
		drop(b.onNode, old.Node, uid)
		for _, claim := range old.Claims {
			drop(b.using, claim, uid)
		}
	}
	delete(b.pods, uid)
}

// SetClaim takes a claim in place of what was known of it.
func (b *Board) SetClaim(name string, c Claim) {
	b.claims[name] = c
	b.requeue(name)
}

// DropClaim forgets a claim.
func (b *Board) DropClaim(name string) {
	delete(b.claims, name)
	b.requeue(name)
}

// SetBound takes a PersistentVolume in place of what was known of it.
func (b *Board) SetBound(name string, pv Bound) {
	b.DropBound(name)
	b.bounds[name] = pv
	add(b.standing, pv.Handle, name)
	b.requeue(pv.Claim)
}

// DropBound forgets a PersistentVolume.
func (b *Board) DropBound(name string) {
	old := b.bounds[name]
	drop(b.standing, old.Handle, name)
	b.requeue(old.Claim)
	delete(b.bounds, name)
}

func add[K comparable](index map[string]map[K]bool, at string, k K) {
	if index[at] == nil {
		index[at] = map[K]bool{}
	}
	index[at][k] = true
}

func drop[K comparable](index map[string]map[K]bool, at string, k K) {
	delete(index[at], k)
	if len(index[at]) == 0 {
		delete(index, at)
	}
}

// volumesOf are the volumes that a pod uses. A claim that has another UID than its PersistentVolume names
// has only the name of the claim that had the volume.
func (b *Board) volumesOf(p *Pod) (names []string) {
	for _, name := range p.Claims {
		claim := b.claims[name]
		pv := b.bounds[claim.Volume] // without a claim or a bound PersistentVolume it has no handle
		if v := b.volumes[pv.Handle]; v != nil && pv.ClaimUID == claim.UID && !v.Deleting {
			names = append(names, v.Name)
		}
	}
	return names
}

// users are the pods that use a volume, and reach is what its PersistentVolume says of nodes.
func (b *Board) users(volume string) (pods []*Pod, reach *nodeaffinity.NodeSelector) {
	for _, name := range slices.Sorted(maps.Keys(b.standing[volume])) {
		pv := b.bounds[name]
		if claim := b.claims[pv.Claim]; claim.Volume != name || claim.UID != pv.ClaimUID {
			continue
		}
		reach = cmp.Or(reach, pv.Reach)
		for uid := range b.using[pv.Claim] {
			pods = append(pods, b.pods[uid])
		}
	}
	return pods, reach
}
