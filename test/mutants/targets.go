package main

// target is a package whose code is changed, in the files that are named or in all. Its
// own tests are to notice, and those of packages that it was made for.
type target struct {
	dir   string
	files []string
	with  []string
}

// targets are what deletes, formats, wipes, adopts, mounts, places or promises.
var targets = []target{
	{dir: "internal/agent/replica", files: []string{"decide.go", "steps.go", "worker.go", "sweep.go", "formatter.go"}},
	{dir: "internal/agent/snapshot", files: []string{"decide.go", "steps.go", "worker.go", "sweep.go"}},
	{dir: "internal/agent/worker", with: []string{"internal/agent/replica", "internal/agent/snapshot"}},
	{dir: "internal/agent/orphans", with: []string{"internal/agent/replica"}},
	{dir: "internal/agent/inline", files: []string{"publish.go", "unpublish.go", "sweep.go", "service.go"}},
	{dir: "internal/agent/staging"},
	{dir: "internal/controller/usecase", with: []string{"internal/controller/volumes", "internal/controller/snapshots", "internal/controller/upkeep"}},
	{dir: "internal/controller/volumes"},
	{dir: "internal/controller/snapshots"},
	{dir: "internal/controller/upkeep"},
	{dir: "internal/controller/nodegone"},
	{dir: "internal/quarantine"},
	{dir: "internal/ledger", with: []string{"internal/ledger/oracle", "internal/schedule"}},
	{dir: "internal/provision/wipe"},
	{dir: "internal/provision/device", files: []string{"content.go", "create.go", "delete.go", "format.go", "held.go", "identity.go", "record.go", "wipe.go"}},
	{dir: "internal/provision/lvm", files: []string{
		"activate.go", "copying.go", "format.go", "operations.go", "pending.go", "plan.go", "plan_copy.go", "plan_snapshot.go",
		"remnant.go", "removals.go", "remove.go", "tags.go", "wipe.go", "wipe_record.go"}},
	{dir: "internal/provision/zfs", files: []string{"create.go", "delete.go"}},
}
