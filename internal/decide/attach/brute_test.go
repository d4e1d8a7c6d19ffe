package attach

import (
	"maps"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
)

// best tries every way to place standbys: the most nodes that all volumes have in common, and the most
// standbys.
func best(b *Board, volumes, nodes []string) (common, placed int) {
	free := make([]int, len(nodes))
	for j, node := range nodes {
		free[j] = max(0, b.nodes[node].Limit-len(b.attached[node]))
	}
	var try func(i, shared, count int)
	try = func(i, shared, count int) {
		if i == len(volumes) {
			common, placed = max(common, bits.OnesCount(uint(shared))), max(placed, count)
			return
		}
		v, has, may := b.volumes[volumes[i]], 0, 0
		pods, reach := b.users(v.Name)
		for j, node := range nodes {
			_, is := v.Entries[node]
			switch {
			case is && !b.nodes[node].Cordoned: // from a cordoned one it shall go to another node
				has |= 1 << j
			case !is && Refuses(b.nodes[node], reach, pods) == Refusal{}:
				may |= 1 << j
			}
		}
		room := min(v.Factor-bits.OnesCount(uint(has)), v.MaxShares-len(v.Entries))
		for set := range 1 << len(nodes) {
			if set&^may != 0 || bits.OnesCount(uint(set)) > max(0, room) {
				continue
			}
			fits := true
			for j := range nodes {
				if set>>j&1 == 1 {
					free[j]--
				}
				fits = fits && free[j] >= 0
			}
			if fits {
				try(i+1, shared&(has|set), count+bits.OnesCount(uint(set)))
			}
			for j := range nodes {
				if set>>j&1 == 1 {
					free[j]++
				}
			}
		}
	}
	try(0, 1<<len(nodes)-1, 0)
	return common, placed
}

// oneByOne places standbys in any order until none is lacking that can be had, and tells the steps.
func oneByOne(d dice, b *Board, volumes, nodes []string) (steps []string) {
	for left := slices.Clone(volumes); len(left) > 0; {
		i := d.from(0, len(left)-1)
		if node, ok := b.rebuilds(left[i], nodes); ok {
			steps = append(steps, left[i]+" goes to "+node)
			continue
		}
		left = slices.Delete(left, i, i+1)
	}
	return steps
}

// commonNow is how many nodes all volumes are on.
func commonNow(b *Board, volumes, nodes []string) (n int) {
	for _, node := range nodes {
		lacks := func(v string) bool { _, has := b.volumes[v].Entries[node]; return !has }
		if !b.nodes[node].Cordoned && !slices.ContainsFunc(volumes, lacks) {
			n++
		}
	}
	return n
}

// TestWhatBruteForceFindsIsFound: volumes that one pod uses are placed one by one, in any order, and end with
// as many nodes in common, and as many standbys, as any way to place them all at once.
func TestWhatBruteForceFindsIsFound(t *testing.T) {
	chosen, moves := 0, 0
	for seed := range uint64(worlds) {
		d := dice{rand.New(rand.NewPCG(seed, 1))}
		b := New()
		nodes, volumes := names("n", d.from(2, 5)), names("v", d.from(1, 3))
		for i, node := range nodes {
			slots := d.from(1, 3)
			if i == 0 {
				slots += len(volumes)
			}
			b.good(node, slots, func(n *Node) {
				n.Cordoned = d.one(8)
				n.Labels[topologyZone] = []string{"", "a", "b"}[d.from(0, 2)]
			})
		}
		for _, v := range volumes {
			on := []string{"n0"}
			for _, node := range nodes[1:] { // an earlier pod has left standbys
				if d.one(5) && b.free(node) > 0 {
					on = append(on, node)
				}
			}
			b.disk(v, on, func(v *Volume) {
				v.MaxShares = max(len(on), d.from(1, 4))
				v.Factor = d.from(1, v.MaxShares)
			})
			pv := b.bounds["pv-"+v]
			pv.Reach = reaches([]string{"", "", "", "a", "b"}[d.from(0, 4)])
			b.SetBound("pv-"+v, pv)
		}
		b.pod("p", "n0", volumes)
		common, placed := best(b, volumes, nodes)

		if b.nodes["n0"].Cordoned && common > 0 {
			moves++
		}
		steps := oneByOne(d, b, volumes, nodes)
		if got := commonNow(b, volumes, nodes); got != common || len(steps) != placed {
			t.Fatalf("world %d: %d standbys on %d common nodes, and brute force has %d on %d: %v", seed, len(steps), got, placed, common, steps)
		}
		for _, node := range nodes {
			if b.free(node) < 0 {
				t.Fatalf("world %d: node %s has more attachments than slots", seed, node)
			}
		}
		if len(volumes) > 1 && len(steps) > 1 && common > 1 {
			chosen++
		}
	}
	if chosen < worlds/50 {
		t.Errorf("only in %d worlds there was a choice", chosen)
	}
	if moves < worlds/50 {
		t.Errorf("only in %d worlds the pod's own node was leaving, and all of its volumes could follow", moves)
	}
}

// TestAPodThatWaitsFindsASlot: whatever standbys are attached, pods that are bound get their attachments as
// long as a slot of their node is free or a standby there may make way.
func TestAPodThatWaitsFindsASlot(t *testing.T) {
	blocked := 0
	for seed := range uint64(worlds) {
		d := dice{rand.New(rand.NewPCG(seed, 2))}
		b := New()
		nodes := names("n", 2)
		for _, node := range nodes {
			b.good(node, d.from(1, 3))
		}
		standbys, waiting := names("s", d.from(0, 5)), names("w", d.from(1, 4))
		yielding := 0
		for _, name := range standbys {
			if b.free("n0") > 0 {
				b.disk(name, []string{"n1", "n0"}, func(v *Volume) { v.Yields = d.one(2) })
				yielding += map[bool]int{true: 1}[b.volumes[name].Yields]
			}
		}
		for _, name := range waiting {
			b.disk(name, nil)
			b.pod("p"+name, "n0", []string{name})
		}
		want := min(len(waiting), b.free("n0")+yielding)
		leave := len(b.attached["n0"]) - max(0, want-b.free("n0"))

		got := b.settles(waiting, nodes)
		if got != want || len(b.attached["n0"]) != leave+got || b.free("n0") < 0 {
			t.Fatalf("world %d: %d of %d pods got a slot, want %d; %d attachments, want %d", seed, got, len(waiting), want, len(b.attached["n0"]), leave+got)
		}
		if want < len(waiting) {
			blocked++
		}
	}
	if blocked < worlds/10 {
		t.Errorf("only in %d worlds a pod found no slot", blocked)
	}
}

// settles does what the rules do on n0 until nothing changes: pods get their attachments, and standbys make
// way. It returns how many pods got theirs.
func (b *Board) settles(waiting, nodes []string) (got int) {
	for changed := true; changed; {
		changed = false
		for _, name := range slices.Sorted(maps.Keys(b.volumes)) {
			_, has := b.volumes[name].Entries["n0"]
			switch p := b.Places(name, nodes)["n0"]; {
			case !has && p.Slots > 0 && slices.Contains(waiting, name):
				b.disk(name, []string{"n0"})
				got, changed = got+1, true
			case has && p.GiveWay:
				b.disk(name, []string{"n1"}, func(v *Volume) { v.Yields = true })
				changed = true
			}
		}
	}
	return got
}

// worlds is how many worlds each test plays.
const worlds = 5000

// dice makes the choices of one world.
type dice struct{ *rand.Rand }

func (d dice) from(low, high int) int { return low + d.IntN(high-low+1) }
func (d dice) one(in int) bool        { return d.IntN(in) == 0 }
