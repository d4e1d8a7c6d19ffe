package snapshot

import (
	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/decide/placed"
	"berth.dev/berth/internal/decide/snapshot/snapshottest"
)

const (
	here   = snapshottest.Here
	id     = snapshottest.ID
	volume = snapshottest.Volume
	gib    = snapshottest.GiB
)

var (
	vg0       = snapshottest.VG0
	snapshot  = snapshottest.Snapshot
	deleting  = snapshottest.Deleting
	adopted   = snapshottest.Adopted
	on        = snapshottest.On
	saying    = snapshottest.Saying
	took      = snapshottest.Took
	ready     = snapshottest.Ready
	failed    = snapshottest.Failed
	record    = snapshottest.Record
	copying   = snapshottest.Copying
	later     = snapshottest.Later
	larger    = snapshottest.Larger
	broken    = snapshottest.Broken
	sameState = snapshottest.Says
)

func decided(s *v1alpha1.Snapshot, node string, f Facts) Answer {
	return Decide(placed.Look(s, node, f))
}
