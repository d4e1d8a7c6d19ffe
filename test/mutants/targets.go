package main

// target is a package whose code the command changes, in the named files or in all. Its
// own tests must notice the changes, and so must those of the packages in with, which use it.
type target struct {
	dir   string
	files []string
	with  []string
}

// targets are the packages that delete, format, wipe, adopt, mount, place or promise.
var targets = []target{
	{dir: "internal/decide", with: []string{"internal/decide/replica", "internal/decide/snapshot", "internal/decide/orphan"}},
	{dir: "internal/decide/replica", files: []string{"decide.go", "proof.go", "stale.go"}, with: []string{"internal/agent/replica"}},
	{dir: "internal/decide/snapshot", files: []string{"decide.go", "stale.go"}, with: []string{"internal/agent/snapshot"}},
	{dir: "internal/decide/orphan", with: []string{"internal/agent/orphans"}},
	{dir: "internal/decide/placed", files: []string{"stale.go", "view.go"}, with: []string{"internal/decide/replica", "internal/decide/snapshot"}},
	{dir: "internal/decide/wish"},
	{dir: "internal/decide/gone", with: []string{"internal/controller/nodegone"}},
	{dir: "internal/agent/replica", files: []string{"disks.go", "formatter.go", "worker.go"}},
	{dir: "internal/agent/snapshot", files: []string{"disks.go", "worker.go"}},
	{dir: "internal/agent/worker", with: []string{"internal/agent/replica", "internal/agent/snapshot"}},
	{dir: "internal/agent/orphans", with: []string{"internal/agent/replica"}},
	{dir: "internal/publish/inline"},
	{dir: "internal/publish/staging", files: []string{"confine.go", "figures.go", "publish.go", "service.go", "stage.go"}},
	{dir: "internal/usecase", with: []string{"internal/usecase/volumes", "internal/usecase/snapshots", "internal/controller/upkeep"}},
	{dir: "internal/usecase/volumes"},
	{dir: "internal/usecase/snapshots"},
	{dir: "internal/controller/upkeep"},
	{dir: "internal/controller/nodegone"},
	{dir: "internal/quarantine"},
	{dir: "internal/ledger", with: []string{"internal/ledger/oracle", "internal/schedule"}},
	{dir: "internal/lineage", with: []string{"internal/ownership", "internal/explore"}},
	{dir: "internal/ownership"},
	{dir: "internal/provision/wipe"},
	{dir: "internal/provision/device", files: []string{"content.go", "create.go", "delete.go", "format.go", "held.go", "identity.go", "record.go", "wipe.go"}},
	{dir: "internal/provision/engine"},
	{dir: "internal/provision/lvm", files: []string{
		"activate.go", "change.go", "copying.go", "format.go", "operations.go", "removals.go", "remove.go", "wipe.go", "wipe_record.go"}},
	{dir: "internal/provision/lvm/group", files: []string{
		"pending.go", "plan.go", "plan_copy.go", "plan_snapshot.go", "remnant.go", "steps.go", "tags.go"}},
	{dir: "internal/provision/zfs/zpool", files: []string{"leftovers.go", "plan.go", "plan_create.go", "steps.go", "subject.go"}, with: []string{"internal/provision/zfs"}},
	{dir: "internal/provision/btrfs", files: []string{"space.go"}},
	{dir: "internal/provision/zfs", files: []string{"create.go", "delete.go"}},
	{dir: "internal/replicate/stream", files: []string{"receive.go", "session.go", "verify.go"}},
	{dir: "internal/replicate/cert/issue", files: []string{"authority.go", "decide.go"}},
	{dir: "internal/agent/owner"},
	{dir: "internal/agent/attached", files: []string{"content.go", "volumes.go"}},
	{dir: "internal/agent/released"},
	{dir: "internal/usecase/luns", files: []string{"judge.go", "wipe.go"}},
	{dir: "internal/agent/journal"},
	{dir: "internal/guard"},
	{dir: "internal/guard/keep"},
	{dir: "internal/guard/holders", files: []string{"device.go", "kernel.go", "scan.go"}},
	{dir: "internal/guard/lease"},
	{dir: "internal/guard/sight"},
	{dir: "internal/guard/watchdog"},
	{dir: "internal/guard/word"},
	{dir: "internal/controller/oversight"},
	{dir: "internal/controller/places"},
	{dir: "internal/decide/attach", with: []string{"internal/controller/attacher"}},
	{dir: "internal/record"},
	{dir: "internal/provision/iscsi"},
	{dir: "internal/provision/shared"},
	{dir: "internal/provision/replica"},
	{dir: "internal/peer"},
}
