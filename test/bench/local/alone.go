package main

import (
	"slices"
	"strings"
	"sync"

	"berth.dev/berth/internal/provision/zfs"
	"berth.dev/berth/internal/run"
)

// alone shows a provisioner only its own zpool, and hides the zpools of the other sides. On a
// node of its own the provisioner would not read those, nor look again for every zvol that it
// does not know.
type alone struct {
	zfs.Devices
	zpool  string
	others *zvols
}

// Pools implements zfs.Devices.
func (a alone) Pools() ([]zfs.Pool, error) {
	pools, err := a.Devices.Pools()
	return slices.DeleteFunc(pools, func(p zfs.Pool) bool { return p.Name != a.zpool }), err
}

// Zvols implements zfs.Devices.
func (a alone) Zvols() (int, error) {
	n, err := a.Devices.Zvols()
	return n - a.others.count(), err
}

// zvols is a runner that learns from its commands which zvols exist.
type zvols struct {
	run.Runner
	mu    sync.Mutex
	names map[string]bool
}

// Change implements run.Runner.
func (z *zvols) Change(c run.Command) ([]byte, error) {
	out, err := z.Runner.Change(c)
	if err == nil {
		z.learn(c.Args)
	}
	return out, err
}

func (z *zvols) learn(args []string) {
	z.mu.Lock()
	defer z.mu.Unlock()
	name := args[len(args)-1]
	switch args[0] {
	case "create":
		if slices.Contains(args, "-V") {
			z.names[name] = true
		}
	case "clone":
		if of, _, _ := strings.Cut(args[len(args)-2], "@"); z.names[of] {
			z.names[name] = true
		}
	case "destroy":
		delete(z.names, name)
	}
}

func (z *zvols) count() int {
	z.mu.Lock()
	defer z.mu.Unlock()
	return len(z.names)
}
