package replica

import "berth.dev/berth/internal/decide/replica/replicatest"

const (
	here     = replicatest.Here
	id       = replicatest.ID
	gib      = replicatest.GiB
	source   = replicatest.Source
	original = replicatest.Original
)

type option = replicatest.Option

var (
	vg0       = replicatest.VG0
	volume    = replicatest.Volume
	deleting  = replicatest.Deleting
	adopted   = replicatest.Adopted
	block     = replicatest.Block
	of        = replicatest.Of
	on        = replicatest.On
	saying    = replicatest.Saying
	ready     = replicatest.Ready
	failed    = replicatest.Failed
	gone      = replicatest.Gone
	restored  = replicatest.Restored
	marked    = replicatest.Marked
	in        = replicatest.In
	sameState = replicatest.Says
)
