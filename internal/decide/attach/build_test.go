package attach

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"berth.dev/berth/internal/ownership"
)

// good makes a node that refuses nothing.
func (b *Board) good(name string, slots int, change ...func(*Node)) {
	b.SetNode(name, func(n *Node) {
		n.Exists, n.Ready, n.Registered, n.Guarded, n.Limit = true, true, true, true, slots
		n.Labels = map[string]string{corev1.LabelHostname: name}
		for _, c := range change {
			c(n)
		}
	})
}

// disk makes a volume of two shares with ready attachments, the owner's first, its PersistentVolume and its
// claim.
func (b *Board) disk(name string, on []string, change ...func(*Volume)) {
	v := Volume{Name: name, Factor: 2, MaxShares: 2, Entries: map[string]ownership.State{}}
	for _, node := range on {
		v.Entries[node] = ownership.Ready
	}
	if len(on) > 0 {
		v.Owners = on[:1]
	}
	for _, c := range change {
		c(&v)
	}
	b.SetVolume(v)
	claim, pv := "shop/"+name, "pv-"+name
	b.SetClaim(claim, Claim{UID: types.UID(name), Volume: pv})
	b.SetBound(pv, Bound{Handle: name, Claim: claim, ClaimUID: types.UID(name), Reach: b.bounds[pv].Reach})
}

// pod makes a pod that uses the claims of volumes.
func (b *Board) pod(name, node string, volumes []string, change ...func(*Pod)) {
	p := Pod{Node: node, Required: nodeaffinity.NewRequiredNodeAffinity(nil, nil)}
	for _, v := range volumes {
		p.Claims = append(p.Claims, "shop/"+v)
	}
	for _, c := range change {
		c(&p)
	}
	b.SetPod(types.UID(name), p)
}

func names(prefix string, n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf("%s%d", prefix, i))
	}
	return list
}

// rebuilds does what the rules do for a volume that lacks a standby, and says where it goes; false if nowhere.
func (b *Board) rebuilds(volume string, nodes []string) (string, bool) {
	v := b.volumes[volume]
	pods, _ := b.users(volume)
	if b.staying(v, pods) >= v.Factor || !v.shared() {
		return "", false
	}
	places, best := b.Places(volume, nodes), ""
	for _, name := range nodes {
		p := places[name]
		if _, taken := v.Entries[name]; taken || !p.Fits() || p.Slots <= 0 {
			continue
		}
		if best == "" || p.Rank < places[best].Rank {
			best = name
		}
	}
	if best == "" {
		return "", false
	}
	next := *v
	next.Entries = maps.Clone(v.Entries)
	next.Entries[best] = ownership.Reserved
	b.SetVolume(next)
	return best, true
}
