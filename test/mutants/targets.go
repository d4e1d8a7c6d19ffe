package main

// target is a package whose code is changed, in the files that are named or in all. Its
// own tests are to notice, and those of packages that it was made for.
type target struct {
	dir   string
	files []string
	with  []string
	// open says that nobody has judged yet what lives: it is tried when -packages names it,
	// and told of, and fails nothing.
	open bool
}

// targets are what deletes, formats, wipes, adopts, mounts, places or promises.
var targets = []target{
	{dir: "internal/agent/replica", files: []string{"steps.go", "worker.go", "sweep.go", "formatter.go"}},
	{dir: "internal/agent/replica", files: []string{"decide.go"}, open: true},
	{dir: "internal/agent/snapshot", files: []string{"steps.go", "worker.go", "sweep.go"}},
	{dir: "internal/agent/snapshot", files: []string{"decide.go"}, open: true},
	{dir: "internal/agent/worker", with: []string{"internal/agent/replica", "internal/agent/snapshot"}},
	{dir: "internal/agent/orphans", with: []string{"internal/agent/replica"}, open: true},
	{dir: "internal/agent/inline", files: []string{"publish.go", "unpublish.go", "sweep.go", "service.go"}, open: true},
	{dir: "internal/agent/staging", files: []string{"confine.go", "figures.go", "publish.go", "service.go", "stage.go"}},
	{dir: "internal/controller/usecase", with: []string{"internal/controller/volumes", "internal/controller/snapshots", "internal/controller/upkeep"}, open: true},
	{dir: "internal/controller/volumes", open: true},
	{dir: "internal/controller/snapshots", open: true},
	{dir: "internal/controller/upkeep", open: true},
	{dir: "internal/controller/nodegone", open: true},
	{dir: "internal/quarantine", open: true},
	{dir: "internal/ledger", with: []string{"internal/ledger/oracle", "internal/schedule"}, open: true},
	{dir: "internal/provision/wipe"},
	{dir: "internal/provision/device", files: []string{"content.go", "create.go", "delete.go", "format.go", "held.go", "identity.go", "record.go", "wipe.go"}, open: true},
	{dir: "internal/provision/lvm", files: []string{
		"activate.go", "copying.go", "format.go", "operations.go", "pending.go", "plan.go", "plan_copy.go", "plan_snapshot.go",
		"remnant.go", "removals.go", "remove.go", "tags.go", "wipe.go", "wipe_record.go"}, open: true},
	{dir: "internal/provision/zfs", files: []string{"create.go", "delete.go"}, open: true},
}
