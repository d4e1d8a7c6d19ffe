package kernel

import (
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// find returns the device of a zvol. It follows the zvol's link. If that does not lead to the
// device, it asks the devices that came since a time.
func (d *Devices) find(dataset string, since time.Time) (string, error) {
	if device, err := filepath.EvalSymlinks(link(dataset)); err == nil && is(device, dataset) {
		return device, nil
	}
	entries, err := zvolsIn(blockDir)
	if err != nil {
		return "", err
	}
	var nodes []node
	for _, e := range entries {
		if n, err := nodeOf(filepath.Join("/dev", filepath.Base(e))); err == nil && !n.born.Before(since) {
			nodes = append(nodes, n)
		}
	}
	newestFirst(nodes)
	for _, n := range nodes {
		if is(n.path, dataset) {
			return n.path, nil
		}
	}
	return "", fmt.Errorf("none of %d zvols is %s", len(nodes), dataset)
}

// node is the node of a device, and when it was made.
type node struct {
	path string
	born time.Time
}

func nodeOf(path string) (node, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return node{}, err
	}
	return node{path, time.Unix(st.Ctim.Unix())}, nil
}

// newestFirst sorts devices by age: a new one is most likely the one that is looked for. Asking
// a device means to open it, which takes ZFS a while.
func newestFirst(nodes []node) {
	slices.SortStableFunc(nodes, func(a, b node) int { return b.born.Compare(a.born) })
}
