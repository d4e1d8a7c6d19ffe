package simdisk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
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

var handle = regexp.MustCompile(`^sim:///([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)$`)

// In returns the simulated disks of a directory as a node of this machine sees them, with block
// devices. Disk NAME is the directory NAME there, with two files that an administrator makes: "disk"
// has its bytes, and "identity" the line that it says of itself.
func In(dir, node string) shared.Disks {
	var mu sync.Mutex
	nodes := map[string]*Node{}
	return shared.Finder{
		Promises: (&Target{c: Config{Persistent: true}}).capabilities(),
		Find: func(d shared.Disk) (shared.Disks, error) {
			name := handle.FindStringSubmatch(d.Handle)
			if name == nil {
				return nil, fmt.Errorf("%w: volume %s is the disk %.300q, and a simulated disk has a handle sim:///NAME", provision.ErrInvalid, d.Volume, d.Handle)
			}
			mu.Lock()
			defer mu.Unlock()
			if n, known := nodes[name[1]]; known {
				return n, nil
			}
			target, err := openDisk(filepath.Join(dir, name[1]))
			if err != nil {
				return nil, err
			}
			nodes[name[1]] = target.Node(node)
			return nodes[name[1]], nil
		},
	}
}

// PowerOff is the loss of the machine of a node that this machine plays: the node's device of a disk of a
// directory goes. The target learns nothing of it. No process of the node must run any more.
func PowerOff(dir, disk, node string) error {
	target, err := openDisk(filepath.Join(dir, disk))
	if err != nil {
		return err
	}
	return target.store.change(func(*state) ([]Write, error) { return nil, target.devices.remove(node) })
}

// openDisk returns the target of a disk that an administrator has made.
func openDisk(dir string) (*Target, error) {
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
