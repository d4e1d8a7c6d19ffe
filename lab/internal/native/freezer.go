package native

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// freezeLimit is how long the kernel may take until every process of a node has stopped.
const freezeLimit = 10 * time.Second

// freezerState returns the file that stops all processes of a cgroup and of those below it.
func freezerState(cgroup string) string {
	return filepath.Join(cgroupRoot, "freezer", cgroup, "freezer.state")
}

const (
	frozen = "FROZEN"
	thawed = "THAWED"
)

// isFrozen reports whether a node is stopped, or about to be.
func isFrozen(cgroup string) bool {
	state, err := os.ReadFile(freezerState(cgroup))
	return err == nil && strings.TrimSpace(string(state)) != thawed
}

// freeze stops all processes of a node, or lets them go on, and waits until the kernel has
// done it. A node that cannot be stopped in time goes on.
func freeze(ctx context.Context, cgroup string, stop bool) error {
	want := thawed
	if stop {
		want = frozen
	}
	path := freezerState(cgroup)
	limited, cancel := context.WithTimeout(ctx, freezeLimit)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		// Each write tries again the processes that could not be stopped the time before.
		err := os.WriteFile(path, []byte(want), 0o644)
		if errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("the node has no freezer (%w): this machine has no cgroup v1 hierarchy of it", err)
		}
		if err != nil {
			return fmt.Errorf("writing %s: %w", want, err)
		}
		state, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("reading the state of the freezer: %w", err)
		}
		if strings.TrimSpace(string(state)) == want {
			return nil
		}
		select {
		case <-limited.Done():
			err := fmt.Errorf("a process did not stop within %v", freezeLimit)
			return errors.Join(err, os.WriteFile(path, []byte(thawed), 0o644))
		case <-tick.C:
		}
	}
}

// endFrozen ends all processes of a stopped node. Each has its signal before it may go on, so
// none writes once more. While they are stopped, no pid of theirs can become another process's.
func endFrozen(ctx context.Context, cgroup string) error {
	err := filepath.WalkDir(filepath.Dir(freezerState(cgroup)), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.Name() != "cgroup.procs" {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(data)) {
			pid, err := strconv.Atoi(strings.TrimSpace(line))
			if err != nil || pid <= 1 { // 0 is a process of another pid namespace
				continue
			}
			if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("ending stopped processes: %w", err)
	}
	return freeze(ctx, cgroup, false)
}
