package replica

import (
	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/decide/placed"
	"berth.dev/berth/internal/decide/replica/replicatest"
)

const (
	here     = replicatest.Here
	id       = replicatest.ID
	gib      = replicatest.GiB
	source   = replicatest.Source
	original = replicatest.Original
)

type option = replicatest.Option

var (
	vg0          = replicatest.VG0
	volume       = replicatest.Volume
	deleting     = replicatest.Deleting
	adopted      = replicatest.Adopted
	block        = replicatest.Block
	of           = replicatest.Of
	on           = replicatest.On
	saying       = replicatest.Saying
	ready        = replicatest.Ready
	failed       = replicatest.Failed
	gone         = replicatest.Gone
	restored     = replicatest.Restored
	copyUnderWay = replicatest.CopyUnderWay
	carved       = replicatest.Carved
	fromSnapshot = replicatest.FromSnapshot
	copying      = replicatest.Copying
	blank        = replicatest.Blank
	inline       = replicatest.Inline
	sized        = replicatest.Sized
	marked       = replicatest.Marked
	inPool       = replicatest.InPool
	bears        = replicatest.Bears
	broken       = replicatest.Broken
	because      = replicatest.Because
	stuck        = replicatest.Stuck
	sameState    = replicatest.Says
)

func decided(v *v1alpha1.Volume, node string, f Facts) Answer {
	return Decide(placed.Look(v, node, f))
}

// copied makes the volume one with copies on several nodes.
func copied(v *v1alpha1.Volume) {
	v.Spec.Replication = v1alpha1.Replication{Kind: v1alpha1.ReplicationSnapshots, Factor: 2}
}
