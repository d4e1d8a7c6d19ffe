package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"berth.dev/berth/internal/agent/attached"
	"berth.dev/berth/internal/guard"
	"berth.dev/berth/internal/lineage"
	mountmemory "berth.dev/berth/internal/mount/memory"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/shared"
	"berth.dev/berth/internal/provision/shared/ordered"
	"berth.dev/berth/internal/provision/shared/simdisk"
)

// medium is a shared disk in memory: a target that judges writes, and bytes that bear a filesystem.
type medium struct {
	target *simdisk.Target
	nodes  map[string]*simdisk.Node
	mu     sync.Mutex
	data   []byte
}

func newMedium() *medium {
	return &medium{
		target: simdisk.New(simdisk.Config{Identity: diskIdentity, Shares: 2, Persistent: true}),
		nodes:  map[string]*simdisk.Node{}, data: make([]byte, 16<<20),
	}
}

// kernel is the kernel of one node.
type kernel struct {
	m      *medium
	node   *simdisk.Node
	mounts *mountmemory.Mounter
	mu     sync.Mutex
	bare   []string // the paths from which the agent took a volume by itself, covered or not
}

// machinery returns what a node is made of.
func (m *medium) machinery(_ *scene, node string) machinery {
	return m.machineryOf(node, m.target.Node(node))
}

// machineryOf is machinery with the disk as a node's kernel has it.
func (m *medium) machineryOf(node string, has *simdisk.Node) machinery {
	k := &kernel{m: m, node: has}
	m.nodes[node] = k.node
	k.mounts = mountmemory.New(opened{k})
	return machinery{
		SharedDisks: SharedDisks{
			Boot: node + "-boot", Disks: func(ordered.Book) shared.Disks {
				return shared.Schemes(map[string]shared.Disks{simdisk.Scheme: k.node})
			}, Machine: k, Mounter: k.mounts, Mkfs: k.mkfs,
			Holding: func(provision.Content) (guard.Holding, error) { return guard.Holding{Device: "8:0", Block: true}, nil },
			Cover:   k.cover,
			Eraser:  k,
		},
		mounts: func(v provision.Volume) ([]string, error) { return k.mounts.Mounts(v.Content.Source), nil },
		write:  k.write, read: k.read, covered: k.covered,
	}
}

func (k *kernel) cover(path string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.bare = append(k.bare, path)
	return errors.New("this kernel covers nothing")
}

func (k *kernel) covered() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.bare)
}

const simulated = "/dev/simdisk/disk"

// Device implements the mounter's Devices.
func (k *kernel) Device(path string) (provision.Volume, bool) {
	k.m.mu.Lock()
	defer k.m.mu.Unlock()
	v := provision.Volume{Content: provision.Content{Source: simulated, Identity: diskIdentity}, Size: int64(len(k.m.data))}
	if k.m.data[1080] == 0x53 {
		v.Filesystem = provision.Ext4
	}
	return v, path == simulated
}

// opened are the devices of the mounter.
type opened struct{ *kernel }

// Open implements the mounter's Devices: the device is open as long as it is mounted.
func (o opened) Open(string) (closeDevice func()) {
	d, err := o.node.Open(lineage.Epoch{})
	if err != nil {
		panic(err) // a target in memory opens every device
	}
	return d.Close
}

// Open implements attached.Machine.
func (k *kernel) Open(c provision.Content, _ bool) (attached.Device, error) {
	if c.Identity != diskIdentity {
		return nil, provision.ErrUnavailable
	}
	return &reader{k.m}, nil
}

// Size implements attached.Machine.
func (k *kernel) Size(provision.Content) (int64, error) { return int64(len(k.m.data)), nil }

// Rescan implements attached.Machine.
func (k *kernel) Rescan(context.Context, provision.Content) error { return nil }

// Mounted implements attached.Machine.
func (k *kernel) Mounted(provision.Content) (string, error) {
	if len(k.mounts.Mounts(simulated)) > 0 {
		return provision.Ext4, nil
	}
	return "", nil
}

func (k *kernel) mkfs(context.Context, provision.Volume, string, string, string) error {
	k.m.mu.Lock()
	defer k.m.mu.Unlock()
	k.m.data[1080], k.m.data[1081] = 0x53, 0xef
	return nil
}

// write is a pod's write through to the target.
func (k *kernel) write(path, text string) error {
	if !slices.Contains(k.mounts.Mounts(simulated), path) {
		return fmt.Errorf("nothing is mounted at %s", path)
	}
	d, err := k.node.Open(lineage.Epoch{})
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Write(text)
}

// read returns the last write that the target took.
func (k *kernel) read(path string) (string, error) {
	log, err := k.m.target.Log()
	if !slices.Contains(k.mounts.Mounts(simulated), path) || err != nil || len(log) == 0 {
		return "", errors.Join(err, errors.New("nothing can be read there"))
	}
	return log[len(log)-1].Data, nil
}

var _ attached.Device = (*reader)(nil)

// reader is the open device.
type reader struct{ m *medium }

func (r *reader) ReadAt(b []byte, at int64) (int, error) {
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	return copy(b, r.m.data[at:]), nil
}

func (r *reader) WriteAt(b []byte, at int64) (int, error) {
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	return copy(r.m.data[at:], b), nil
}

func (*reader) Close() error { return nil }
