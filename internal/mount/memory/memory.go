package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/provision"
)

// Devices finds the volume that a device path leads to. The provisioner's memory.Disks
// implement it.
type Devices interface {
	Device(path string) (provision.Volume, bool)
	// Open counts a user of a volume's device.
	Open(id string) (closeDevice func())
}

// Mounter keeps a mount table.
type Mounter struct {
	devices Devices
	mu      sync.Mutex
	mounts  map[string]entry
	// sizes of filesystems by device. Only Grow adapts one to the size of its device.
	sizes map[string]int64
}

type entry struct {
	content  provision.Content
	block    bool
	readOnly bool
	// sealed says that the filesystem itself is read-only, and not only this mount.
	sealed      bool
	context     string
	closeDevice func()
}

var _ mount.Mounter = (*Mounter)(nil)

// New makes a mounter with an empty mount table.
func New(devices Devices) *Mounter {
	return &Mounter{devices: devices, mounts: map[string]entry{}, sizes: map[string]int64{}}
}

// Mount implements mount.Mounter.
func (m *Mounter) Mount(ctx context.Context, r mount.Request) error {
	if err := cmp.Or(r.Check(), context.Cause(ctx)); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	v, err := m.volume(r.Content)
	if err != nil {
		return err
	}
	want := entry{content: r.Content, readOnly: r.ReadOnly, sealed: r.ReadOnly, context: mount.Context(r.Options)}
	if done, err := m.mounted(r.Target, want); done || err != nil {
		return err
	}
	if v.Filesystem != r.Filesystem {
		return fmt.Errorf("%w: %s bears %q, not %s", mount.ErrCorrupt, r.Content.Source, v.Filesystem, r.Filesystem)
	}
	if err := mount.MakeDirectory(r.Target); err != nil {
		return err
	}
	if m.sizes[r.Content.Source] == 0 {
		m.sizes[r.Content.Source] = v.Size
	}
	m.put(r.Target, want, v)
	return nil
}

// Bind implements mount.Mounter.
func (m *Mounter) Bind(ctx context.Context, r mount.BindRequest) error {
	if err := cmp.Or(r.Check(), context.Cause(ctx)); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	v, err := m.volume(r.Content)
	if err != nil {
		return err
	}
	want := entry{content: r.Content, readOnly: r.ReadOnly, block: r.Source == "", context: r.Context}
	makePoint := mount.MakeFile
	if !want.block {
		makePoint = mount.MakeDirectory
		source, ok := m.mounts[r.Source]
		if !ok || source.content != r.Content || source.block {
			return fmt.Errorf("%w: %s at %s", mount.ErrNotMounted, r.Content.Source, r.Source)
		}
		if err := source.labelled(r.Source, want); err != nil {
			return err
		}
		want.readOnly, want.sealed, want.context = want.readOnly || source.readOnly, source.sealed, source.context
	}
	if done, err := m.mounted(r.Target, want); done || err != nil {
		return err
	}
	if err := makePoint(r.Target); err != nil {
		return err
	}
	m.put(r.Target, want, v)
	return nil
}

// Unmount implements mount.Mounter.
func (m *Mounter) Unmount(ctx context.Context, target string) error {
	if err := cmp.Or(mount.CheckPath(target), context.Cause(ctx)); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, ok := m.mounts[target]; ok {
		e.closeDevice()
		delete(m.mounts, target)
	}
	return nil
}

// Grow implements mount.Mounter.
func (m *Mounter) Grow(ctx context.Context, r mount.GrowRequest) error {
	if err := cmp.Or(r.Check(), context.Cause(ctx)); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	v, err := m.volume(r.Content)
	if err != nil {
		return err
	}
	e, ok := m.mounts[r.Target]
	if !ok || e.content != r.Content || e.block {
		return fmt.Errorf("%w: %s at %s", mount.ErrNotMounted, r.Content.Source, r.Target)
	}
	if !e.sealed {
		m.sizes[r.Content.Source] = v.Size
	}
	return nil
}

// Trim implements mount.Mounter. A filesystem of a node that is simulated has nothing to discard.
func (m *Mounter) Trim(ctx context.Context, r mount.TrimRequest) (mount.Trimmed, error) {
	if err := cmp.Or(r.Check(), context.Cause(ctx)); err != nil {
		return mount.Trimmed{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	v, err := m.volume(r.Content)
	if err != nil {
		return mount.Trimmed{}, err
	}
	switch e, ok := m.mounts[r.Target]; {
	case !ok || e.content != r.Content || e.block:
		return mount.Trimmed{}, fmt.Errorf("%w: %s at %s", mount.ErrNotMounted, r.Content.Source, r.Target)
	case e.readOnly:
		return mount.Trimmed{}, fmt.Errorf("%w: the filesystem at %s is read-only, and is not trimmed", provision.ErrUnsupported, r.Target)
	}
	if r.Length >= v.Size-r.Start {
		return mount.Trimmed{}, nil
	}
	return mount.Trimmed{Next: r.Start + r.Length}, nil
}

// Stats implements mount.Mounter.
func (m *Mounter) Stats(ctx context.Context, path string) (mount.Stats, error) {
	if err := cmp.Or(mount.CheckPath(path), context.Cause(ctx)); err != nil {
		return mount.Stats{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.mounts[path]
	if !ok || e.block {
		return mount.Stats{}, fmt.Errorf("%w: %s", mount.ErrNotMounted, path)
	}
	size := m.sizes[e.content.Source]
	if e.content.IsTree() { // it always has the size of its volume
		v, err := m.volume(e.content)
		if err != nil {
			return mount.Stats{}, err
		}
		size = v.Size
	}
	inodes := size >> 14
	return mount.Stats{
		Total: size, Available: size - size/64, Used: size / 64,
		Inodes: inodes, InodesAvailable: inodes - 11, InodesUsed: 11,
	}, nil
}

// Mounts returns the targets where a source is mounted, in order.
func (m *Mounter) Mounts(source string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var targets []string
	for target, e := range m.mounts {
		if e.content.Source == source {
			targets = append(targets, target)
		}
	}
	slices.Sort(targets)
	return targets
}

func (m *Mounter) volume(c provision.Content) (provision.Volume, error) {
	v, ok := m.devices.Device(c.Source)
	switch {
	case !ok:
		return v, fmt.Errorf("%w: device %s", provision.ErrNotFound, c.Source)
	case v.Content.Identity != c.Identity:
		return v, fmt.Errorf("%w: %s is another device: %s, not %s", provision.ErrUnavailable, c.Source, v.Content.Identity, c.Identity)
	}
	return v, nil
}

// mounted says whether the wanted mount is at the target already.
func (m *Mounter) mounted(target string, want entry) (bool, error) {
	e, ok := m.mounts[target]
	if !ok {
		return false, nil
	}
	if e.content != want.content || e.block != want.block || e.readOnly != want.readOnly {
		return false, fmt.Errorf("%w: %s is mounted at %s in another way", provision.ErrConflict, e.content.Source, target)
	}
	err := e.labelled(target, want)
	return err == nil, err
}

// labelled returns nil if a mount has the wanted SELinux context.
func (e entry) labelled(target string, want entry) error {
	if want.context == "" || want.block || mount.SameContext(e.context, want.context) {
		return nil
	}
	return fmt.Errorf("%w: %s is mounted at %s with SELinux context %q, not %q", provision.ErrConflict, e.content.Source, target, e.context, want.context)
}

func (m *Mounter) put(target string, e entry, v provision.Volume) {
	e.closeDevice = m.devices.Open(v.ID)
	m.mounts[target] = e
}
