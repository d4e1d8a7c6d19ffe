package lvmtest

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/lvm/group"
	"berth.dev/berth/internal/run"
	"berth.dev/berth/internal/run/runtest"
)

// Unit is the extent size of every group.
const Unit = 4 << 20

// Host is a machine with volume groups. It runs LVM commands and answers questions about its
// devices.
type Host struct {
	// Around runs around every command.
	Around runtest.Around
	// Wiping, if set, runs around every step that wipes a part of a device.
	Wiping func(path string, offset, length int64, do func() error) error
	// Label, if set, writes a physical volume's label to a disk and returns the disk's size. The
	// error says why LVM does not take the disk.
	Label func(node string) (size int64, err error)
	// Copying, if set, runs around every step that writes a part of a copy.
	Copying func(path string, offset, length int64, do func() error) error
	// Unreadable says that the number of a group cannot be read from its disks.
	Unreadable bool
	// IgnoresFilters says that LVM reads all devices, whatever its filters are.
	IgnoresFilters bool
	// Settings of the machine's own LVM.
	Settings Settings
	// Targets that the kernel lacks are Missing.
	Targets map[string]Presence

	mu       sync.Mutex
	groups   map[string]*Group
	blocks   map[string]group.Block
	known    map[string]group.Known
	watchers map[chan string]struct{}
	// nodes are the device nodes that lead to a wrong device, each with the path of that device's
	// volume; empty if there is no device.
	nodes map[string]string
}

// Group is a volume group. Two can have one name. One of them is then kept by another key, and
// a command that does not see the first can read it.
type Group struct {
	Name, Device string
	// UUID is made of the name unless it is given.
	UUID     string
	Extents  int64
	Seqno    uint64
	Missing  int
	Exported bool
	// Tags of the group, and More devices than the first.
	Tags, More []string
	Volumes    map[string]*Volume
	// AreaSize is the size of the group's metadata area in bytes, AreaFree how much of it is free.
	// Both are 0 if LVM does not report them.
	AreaSize, AreaFree int64
	// content of its disk, by the place of each byte; zeros are left out.
	content map[int64]byte
}

// Volume is a logical volume.
type Volume struct {
	// uuid is empty until LVM is asked for it. It stays with the volume whatever its name.
	uuid string
	// Extents of its size. A thin volume takes none of the group's.
	Extents      int64
	Tags         []string
	Active, Open bool
	// Suspended says that a command died and left the device suspended. Loaded is how many extents
	// the table has that the command loaded and did not put into use. Maps is how many extents the
	// kernel maps; 0 if it maps as many as LVM has recorded.
	Suspended    bool
	Loaded, Maps int64
	// Pool of a thin volume, and Data it holds there in bytes.
	Pool string
	Data int64
	// Thin is set for a thin pool.
	Thin *ThinPool
	// Origin of a snapshot.
	Origin string
	// Skip says that LVM does not activate it unless a command asks for that explicitly, and
	// ReadOnly that its device cannot be written.
	Skip, ReadOnly bool
	// Signature stands for a filesystem on the device, and Content for other data there.
	Signature, Content string
	// Layout that others gave it; "linear" if empty.
	Layout string
	// at are its extents on the disk, and own is the content of a thin volume or a snapshot, by the
	// place of each byte.
	at  []int64
	own map[int64]byte
	// held is set while it is open exclusively, and looks counts its readers.
	held  bool
	looks int
	// Broken says that the kernel gave up this copy-on-write snapshot.
	Broken bool
}

// NewHost makes a machine with empty groups of so many extents.
func NewHost(groups map[string]int64) *Host {
	h := &Host{groups: map[string]*Group{}, watchers: map[chan string]struct{}{}}
	for name, extents := range groups {
		h.AddGroup(name, extents)
	}
	return h
}

// AddGroup makes an empty group on a device of its own.
func (h *Host) AddGroup(name string, extents int64) {
	h.Edit(func(groups map[string]*Group) string {
		g := &Group{Name: name, Device: "/dev/disk-" + name, Extents: extents, Seqno: 1, Volumes: map[string]*Volume{}}
		groups[name] = g
		return g.Device
	})
}

// Edit changes the groups as other programs do. f returns the device it wrote to.
func (h *Host) Edit(f func(groups map[string]*Group) (device string)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed(f(h.groups))
}

// PutForeign makes a logical volume that bears no tag.
func (h *Host) PutForeign(group, name string, size int64) {
	h.Edit(func(groups map[string]*Group) string {
		g := groups[group]
		g.Volumes[name] = &Volume{Extents: (size + Unit - 1) / Unit, Active: true}
		g.Seqno++
		return g.Device
	})
}

// closed tells the watchers that a writer closed a device. The caller holds mu.
func (h *Host) closed(device string) {
	for w := range h.watchers {
		select {
		case w <- device:
		default:
		}
	}
}

// Query implements run.Runner.
func (h *Host) Query(ctx context.Context, c run.Command) ([]byte, error) {
	return runtest.Query(ctx, c, h.Change)
}

// Change implements run.Runner.
func (h *Host) Change(c run.Command) ([]byte, error) {
	h.mu.Lock()
	around := h.Around
	h.mu.Unlock()
	return around.Play(c, h.do)
}

// Disturb lets f change the fields of h while a provisioner is at work.
func (h *Host) Disturb(f func(h *Host)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f(h)
}

// Sequence implements lvm.Devices.
func (h *Host) Sequence(device string) (uint64, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.Unreadable {
		return 0, errors.New("input/output error")
	}
	for _, g := range h.groups {
		if g.Device == device || slices.Contains(g.More, device) {
			return g.Seqno, nil
		}
	}
	return 0, errors.New("no LVM metadata")
}

// Same implements lvm.Devices.
func (h *Host) Same(a, b string) bool { return a == b }

// Watch implements lvm.Devices.
func (h *Host) Watch(ctx context.Context, ready func(), written func(string)) error {
	events := make(chan string, 100)
	h.mu.Lock()
	h.watchers[events] = struct{}{}
	h.mu.Unlock()
	ready()
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.watchers, events)
	}()
	for {
		select {
		case device := <-events:
			written(device)
		case <-ctx.Done():
			return nil
		}
	}
}

// Mkfs writes a signature to a device, as lvm.Config wants it.
func (h *Host) Mkfs(_ context.Context, v provision.Volume, filesystem, _ string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	device, _, err := h.proved(v.Content.Source, v.Content.Identity)
	if err == nil {
		device.Signature = filesystem
	}
	return err
}

// On runs f on a logical volume, nil if it is not there.
func (h *Host) On(path string, f func(*Volume)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, v := h.device(path)
	f(v)
}

func (h *Host) device(path string) (*Group, *Volume) {
	parts := strings.Split(strings.TrimPrefix(path, "/dev/"), "/")
	if len(parts) != 2 || h.groups[parts[0]] == nil {
		return nil, nil
	}
	return h.groups[parts[0]], h.groups[parts[0]].Volumes[parts[1]]
}

func (g *Group) uuid() string { return cmp.Or(g.UUID, g.Name+"-uuid") }

func (g *Group) free() int64 {
	free := g.Extents
	for _, v := range g.Volumes {
		if v.Pool == "" {
			free -= v.Extents
		}
		if v.Thin != nil {
			free -= v.Thin.Metadata
		}
	}
	return free
}

func (v *Volume) tags() string { return strings.Join(slices.Sorted(slices.Values(v.Tags)), ",") }
