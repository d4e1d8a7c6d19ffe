package snapshot

import "berth.dev/berth/internal/decide/snapshot/snapshottest"

const (
	here   = snapshottest.Here
	id     = snapshottest.ID
	volume = snapshottest.Volume
	gib    = snapshottest.GiB
)

type option = snapshottest.Option

var (
	vg0        = snapshottest.VG0
	moment     = snapshottest.Moment
	object     = snapshottest.Snapshot
	deleting   = snapshottest.Deleting
	adopted    = snapshottest.Adopted
	unlabelled = snapshottest.Unlabelled
	on         = snapshottest.On
	saying     = snapshottest.Saying
	took       = snapshottest.Took
	ready      = snapshottest.Ready
	failed     = snapshottest.Failed
	sameState  = snapshottest.Says
)
