package kernel

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/moby/sys/mountinfo"
)

// Users returns where a path of a filesystem, or anything below it, is mounted: in each mount
// namespace of a process that this one sees. It errs on the side of too many: a line of the table
// does not say of which filesystem the path is.
func Users(path string) (targets []string, err error) {
	tables, err := filepath.Glob("/proc/[0-9]*/mountinfo")
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, table := range append([]string{"/proc/self/mountinfo"}, tables...) {
		space, err := os.Readlink(filepath.Join(filepath.Dir(table), "ns/mnt"))
		if err != nil || seen[space] {
			continue // it ended meanwhile, or shares a namespace
		}
		found, err := usersIn(table, path)
		if table == "/proc/self/mountinfo" && err != nil {
			return nil, fmt.Errorf("reading mount table: %w", err)
		}
		seen[space] = err == nil
		targets = append(targets, found...)
	}
	if len(seen) == 0 {
		return nil, errors.New("there is no mount table")
	}
	return targets, nil
}

func usersIn(table, path string) (targets []string, err error) {
	f, err := os.Open(table)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines, err := mountinfo.GetMountsFromReader(f, func(line *mountinfo.Info) (skip, stop bool) {
		return line.FSType != "btrfs" || line.Root != path && !strings.HasPrefix(line.Root, path+"/"), false
	})
	for _, line := range lines {
		targets = append(targets, line.Mountpoint)
	}
	return targets, err
}
