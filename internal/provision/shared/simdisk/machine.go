package simdisk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/blockdev"
	"berth.dev/berth/internal/provision/shared"
)

// Scheme of the handles of simulated disks: sim:///NAME.
const Scheme = "sim"

// shares is to how many nodes a disk of a directory can be attached at once: as many as a Volume has
// replicas.
const shares = 8

var names = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// NameOf returns the name of a simulated disk, whose handle is SCHEME:///NAME.
func NameOf(scheme, handle string) (string, error) {
	name, is := strings.CutPrefix(handle, scheme+":///")
	if !is || !names.MatchString(name) {
		return "", fmt.Errorf("%w: a simulated disk has a handle %s:///NAME, and not %.300q", provision.ErrInvalid, scheme, handle)
	}
	return name, nil
}

// In returns the simulated disks of a directory as a node of this machine sees them, with block
// devices.
func In(dir, node string) shared.Disks {
	return Named(Scheme, dir, node, func(_ string, n *Node) shared.Disks { return n })
}

// Named returns the disks of a directory, under handles of a scheme, as others make them of how a node of this machine
// sees each. Disk NAME is the directory NAME there, with two files that an administrator makes: "disk" has its bytes,
// and "identity" the line that it says of itself.
func Named(scheme, dir, node string, as func(name string, n *Node) shared.Disks) shared.Disks {
	var mu sync.Mutex
	nodes := map[string]*Node{}
	return shared.Finder{
		Promises: (&Target{c: Config{Persistent: true}}).capabilities(),
		Find: func(d shared.Disk) (shared.Disks, error) {
			name, err := NameOf(scheme, d.Handle)
			if err != nil {
				return nil, fmt.Errorf("volume %s: %w", d.Volume, err)
			}
			mu.Lock()
			defer mu.Unlock()
			if nodes[name] == nil {
				target, err := OpenDisk(filepath.Join(dir, name))
				if err != nil {
					return nil, err
				}
				nodes[name] = target.Node(node)
			}
			return as(name, nodes[name]), nil
		},
	}
}

// PowerOff is the loss of the machine of a node that this machine plays: the node's device of a disk of a
// directory goes. The target learns nothing of it. No process of the node must run any more.
func PowerOff(dir, disk, node string) error {
	target, err := OpenDisk(filepath.Join(dir, disk))
	if err != nil {
		return err
	}
	return target.store.change(func(*state) ([]Write, error) { return nil, target.devices.remove(node) })
}

// OpenDisk returns the target of a disk that an administrator has made.
func OpenDisk(dir string) (*Target, error) {
	identity, err := blockdev.ReadLine(filepath.Join(dir, "identity"))
	if err == nil && identity == "" {
		err = errors.New("the file identity is empty")
	}
	if err == nil {
		_, err = os.Stat(filepath.Join(dir, bytesFile))
	}
	if err != nil {
		return nil, fmt.Errorf("%w: there is no simulated disk %s (it has two files: %s, and identity with one line): %w", provision.ErrUnavailable, dir, bytesFile, err)
	}
	return Open(dir, Config{Identity: provision.Identity(identity), Shares: shares, Persistent: true, Device: true})
}
