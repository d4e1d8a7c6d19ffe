package native

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// cgroupRoot is where the hierarchies are mounted.
const cgroupRoot = "/sys/fs/cgroup"

// hierarchies returns the directories of the machine's cgroup hierarchies. On a
// machine with only the unified one, the lab would have to take the controllers
// from systemd; it does not support that.
func hierarchies() ([]string, error) {
	entries, err := os.ReadDir(cgroupRoot)
	if err != nil {
		return nil, fmt.Errorf("listing cgroup hierarchies: %w", err)
	}
	var found []string
	for _, e := range entries {
		path := filepath.Join(cgroupRoot, e.Name())
		var st unix.Statfs_t
		// A symbolic link is a second name of a hierarchy.
		if e.IsDir() && unix.Statfs(path, &st) == nil && st.Type == unix.CGROUP_SUPER_MAGIC {
			found = append(found, path)
		}
	}
	if !slices.Contains(found, filepath.Join(cgroupRoot, "memory")) {
		return nil, fmt.Errorf("a native node needs cgroup v1 hierarchies below %s, memory among them: use guests on this machine", cgroupRoot)
	}
	return found, nil
}

// enterCgroup makes a cgroup in every hierarchy and moves a process there.
func enterCgroup(name string, pid int) error {
	all, err := hierarchies()
	if err != nil {
		return err
	}
	for _, hierarchy := range all {
		dir := filepath.Join(hierarchy, name)
		if err := makeCgroup(dir); err != nil {
			return fmt.Errorf("creating cgroup: %w", err)
		}
		if filepath.Base(hierarchy) == "cpuset" {
			if err := inheritSets(hierarchy, name); err != nil {
				return err
			}
		}
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o644); err != nil {
			return fmt.Errorf("entering cgroup: %w", err)
		}
	}
	return nil
}

// makeCgroup makes a cgroup and those above it. Another node that clears what is left of it removes the parent
// while that is empty (removeCgroup), also between the two steps of this one.
func makeCgroup(dir string) (err error) {
	for range 100 {
		if err = os.MkdirAll(dir, 0o755); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return err
}

// inheritSets gives a cgroup, and those above it, the processors and memory nodes of its
// parent. Without them no process may enter it.
func inheritSets(hierarchy, name string) error {
	parent := filepath.Dir(name)
	if parent != "/" {
		if err := inheritSets(hierarchy, parent); err != nil {
			return err
		}
	}
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		value, err := os.ReadFile(filepath.Join(hierarchy, parent, file))
		if err == nil {
			err = os.WriteFile(filepath.Join(hierarchy, name, file), value, 0o644)
		}
		if err != nil {
			return fmt.Errorf("inheriting %s: %w", file, err)
		}
	}
	return nil
}

// removeCgroup removes a cgroup with all below it, and its parent if that is then empty.
func removeCgroup(ctx context.Context, name string) error {
	entries, err := os.ReadDir(cgroupRoot)
	if err != nil {
		return fmt.Errorf("listing cgroup hierarchies: %w", err)
	}
	for _, e := range entries {
		dir := filepath.Join(cgroupRoot, e.Name(), name)
		if err := removeTree(ctx, dir); err != nil {
			return fmt.Errorf("removing cgroup: %w", err)
		}
		_ = os.Remove(filepath.Dir(dir)) // other nodes' may be in it
	}
	return nil
}

// removeTree removes cgroups from below; the files in them go by themselves. The
// last process of a killed node leaves its cgroup a moment after its end.
func removeTree(ctx context.Context, dir string) error {
	var dirs []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			dirs = append(dirs, path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, emptyLimit)
	defer cancel()
	for _, d := range slices.Backward(dirs) {
		if err := removeEmpty(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// emptyLimit is how long killed processes may take to leave their cgroups.
const emptyLimit = 5 * time.Second

// removeEmpty removes a cgroup as soon as no process is in it.
func removeEmpty(ctx context.Context, dir string) error {
	for {
		err := os.Remove(dir)
		if !errors.Is(err, unix.EBUSY) {
			return ignoreMissing(err)
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(20 * time.Millisecond):
		}
	}
}
