package placement

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	"berth.dev/berth/api/v1alpha1"
)

// PoolKey names a pool of a node.
type PoolKey struct{ Node, Pool string }

// charge is what one volume takes of one pool. Bytes are not rounded to the
// pool's allocation unit yet.
type charge struct {
	PoolKey
	bytes int64
}

// Usage is what volumes take of the pools, volume by volume: rounding is per
// volume, so a sum alone would not do.
type Usage map[PoolKey][]int64

// UsageOf sums up volumes. The volume called except is left out, so that it
// does not compete with itself when it is placed again.
func UsageOf(volumes []v1alpha1.Volume, except string) Usage {
	usage := Usage{}
	for i := range volumes {
		if volumes[i].Name == except {
			continue
		}
		for _, c := range charges(&volumes[i]) {
			usage[c.PoolKey] = append(usage[c.PoolKey], c.bytes)
		}
	}
	return usage
}

// charges lists what a volume takes: in each pool that its spec names, and on
// each node that still has a replica the spec does not want any more.
func charges(v *v1alpha1.Volume) []charge {
	var list []charge
	wanted := map[string]bool{}
	for _, replica := range v.Spec.Replicas {
		wanted[replica.Node] = true
		list = append(list, charge{
			PoolKey: PoolKey{replica.Node, replica.Pool},
			bytes:   wantedBytes(v.Spec.Capacity, Entry(v, replica.Node)),
		})
	}
	for i := range v.Status.Replicas {
		entry := &v.Status.Replicas[i]
		if wanted[entry.Node] || entry.State == v1alpha1.ReplicaGone || entry.Capacity == nil {
			continue
		}
		list = append(list, charge{PoolKey: PoolKey{entry.Node, entry.Pool}, bytes: entry.Capacity.Value()})
	}
	return list
}

// wantedBytes is what a replica takes or is about to take. A refused request
// takes nothing beyond what the replica already has.
func wantedBytes(asked resource.Quantity, entry *v1alpha1.ReplicaStatus) int64 {
	if entry == nil || entry.State == v1alpha1.ReplicaGone {
		return asked.Value()
	}
	var has int64
	if entry.Capacity != nil {
		has = entry.Capacity.Value()
	}
	refused := entry.Reason == v1alpha1.ReasonNoSpace && entry.Requested != nil && entry.Requested.Cmp(asked) == 0
	if refused {
		return has
	}
	return max(has, asked.Value())
}

// Free is what remains of a pool for new volumes of a class with the given
// spare bytes. It may be negative: the pool is then over-committed.
func (u Usage) Free(node string, pool *v1alpha1.Pool, spare int64) int64 {
	free := pool.Total.Value() - pool.Foreign.Value() - spare
	for _, bytes := range u[PoolKey{node, pool.Name}] {
		free -= RoundUp(bytes, pool)
	}
	return free
}

// RoundUp gives the size that a pool would really carve.
func RoundUp(bytes int64, pool *v1alpha1.Pool) int64 {
	unit := max(pool.AllocationUnit.Value(), 1)
	return (bytes + unit - 1) / unit * unit
}

// Entry is a node's report on a volume, or nil.
func Entry(v *v1alpha1.Volume, node string) *v1alpha1.ReplicaStatus {
	for i := range v.Status.Replicas {
		if v.Status.Replicas[i].Node == node {
			return &v.Status.Replicas[i]
		}
	}
	return nil
}

// Room lists, for each healthy pool of a node that serves a class, the largest
// volume that it could take. An empty class means any.
func (u Usage) Room(node *Node, class string, spare int64) []int64 {
	var room []int64
	for i := range node.Pools {
		pool := &node.Pools[i]
		if pool.Health != v1alpha1.PoolHealthy || class != "" && !slices.Contains(pool.Classes, class) {
			continue
		}
		unit := max(pool.AllocationUnit.Value(), 1)
		room = append(room, max(u.Free(node.Name, pool, spare), 0)/unit*unit)
	}
	return room
}
