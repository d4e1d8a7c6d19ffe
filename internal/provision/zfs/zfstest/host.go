package zfstest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/zfs"
	"berth.dev/berth/internal/provision/zfs/zpool"
	"berth.dev/berth/internal/run"
	"berth.dev/berth/internal/run/runtest"
)

// Host is a machine with zpools.
type Host struct {
	// Around runs around every command.
	Around runtest.Around

	// Version of the kernel's module, and Tools the version that the programs print.
	Version, Tools string

	// Lingering says that a zvol stays although there was no room for it.
	Lingering bool

	// Label writes to a disk of which a zpool is made, and returns the room on it, in bytes.
	Label func(node string) (size int64, err error)
	// Aliases of disks by their nodes; NoUdev says that udev does not run.
	Aliases map[string]string
	NoUdev  bool

	mu     sync.Mutex
	zpools zpools
	// links are the links that do not lead to their own zvols, and the zvols to which they lead.
	links map[string]string
	left  []onDisks
	txg   int64
}

// guids counts the datasets and snapshots that have a guid, on all machines.
var guids atomic.Int64

// Zpool is an imported zpool.
type Zpool struct {
	// State is the kernel's word.
	State string
	// Size in bytes of all its datasets together.
	Size     int64
	Datasets map[string]*Dataset
	// Made has its vdevs and options, if a command made it.
	Made Made
}

// Dataset is a filesystem, or a zvol with a size.
type Dataset struct {
	Props map[string]string
	// guid is 0 until ZFS is asked for it. It stays with the dataset whatever its name.
	guid int64
	// Volsize is 0 for a filesystem.
	Volsize, Refreservation, Refquota, Quota int64
	// Block is the size of a zvol's blocks.
	Block int64
	// Data that a filesystem holds.
	Data int64
	// Content of a zvol; Written is set when it is not that of the last snapshot.
	Content string
	Written bool
	// headed says that ZFS has rewritten the header of the intent log since the last snapshot. That counts as written,
	// and is in no stream. ZFS does it when a dataset is opened, and when its zpool is imported.
	headed bool
	// Signature stands for a filesystem on a zvol.
	Signature string
	// Cached follows Content and is only in the kernel's memory. Failing is why it cannot be
	// written.
	Cached  string
	Failing error
	// Created is when it was made.
	Created time.Time
	// half says that it was received half, of the snapshot of a guid, and from what base.
	half     bool
	to, from int64
	// Origin of a clone.
	Origin    string
	Snapshots map[string]*Snapshot
	// Open and Mounted by a process, and Probed by udev.
	Open, Mounted, Probed bool
}

// Snapshot of a dataset.
type Snapshot struct {
	Props    map[string]string
	guid     int64
	Volsize  int64
	Content  string
	TXG      int64
	Deferred bool
}

var (
	_ run.Runner  = (*Host)(nil)
	_ zfs.Devices = (*Host)(nil)
)

// NewHost makes a machine with empty zpools of so many bytes.
func NewHost(zpools map[string]int64) *Host {
	h := &Host{Version: "2.1.11-1+deb12u1", Tools: "zfs-2.1.11-1+deb12u1", zpools: map[string]*Zpool{}}
	for name, size := range zpools {
		h.zpools[name] = &Zpool{State: "ONLINE", Size: size, Datasets: map[string]*Dataset{name: filesystem()}}
	}
	return h
}

func filesystem() *Dataset {
	return &Dataset{Props: map[string]string{}, Snapshots: map[string]*Snapshot{}}
}

// Edit changes the zpools as others do.
func (h *Host) Edit(f func(zpools map[string]*Zpool)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f(h.zpools)
}

// Received returns a dataset as one is that zfs receive makes of a stream of d, with its
// properties: it has a guid of its own, and its snapshots keep theirs.
func (d *Dataset) Received() *Dataset {
	r := *d
	r.guid, r.Props, r.Snapshots = 0, maps.Clone(d.Props), maps.Clone(d.Snapshots)
	return &r
}

// PutFilesystem makes a filesystem with such properties.
func (h *Host) PutFilesystem(name string, props map[string]string) {
	h.Edit(func(zpools map[string]*Zpool) {
		d := filesystem()
		maps.Copy(d.Props, props)
		zpools[zpoolOf(name)].Datasets[name] = d
	})
}

// PutForeign makes a zvol that bears no record, holds something and takes just the room
// that is charged for a size.
func (h *Host) PutForeign(name string, size int64) {
	h.Edit(func(zpools map[string]*Zpool) {
		all := zpools[zpoolOf(name)].Datasets
		if all[parentOf(name)] == nil {
			all[parentOf(name)] = filesystem()
		}
		d := filesystem()
		d.Volsize, d.Refreservation, d.Data = size, zpool.Charge((size+zpool.Unit-1)/zpool.Unit*zpool.Unit), size/2
		all[name] = d
	})
}

// Halve undoes a command in part. It leaves the part that ZFS makes first: a dataset without
// properties.
func (h *Host) Halve(c run.Command) {
	h.Edit(func(zpools map[string]*Zpool) {
		name := c.Args[len(c.Args)-1]
		d := zpools[zpoolOf(name)].Datasets[name]
		d.Props, d.Refreservation, d.Refquota = map[string]string{}, 0, 0
	})
}

// On runs f on the zvol of a device.
func (h *Host) On(device string, f func(*Dataset)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, d := h.behind(device); d != nil {
		f(d)
	}
}

// Query implements run.Runner.
func (h *Host) Query(ctx context.Context, c run.Command) ([]byte, error) {
	return runtest.Query(ctx, c, h.Change)
}

// Change implements run.Runner.
func (h *Host) Change(c run.Command) ([]byte, error) { return h.Around.Play(c, zfsProgram{h}.do) }

// Module implements zfs.Devices.
func (h *Host) Module() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.Version
}

// Zvols implements zfs.Devices.
func (h *Host) Zvols() (n int, err error) {
	h.Edit(func(zpools map[string]*Zpool) {
		for _, z := range zpools {
			for _, d := range z.Datasets {
				if d.Volsize > 0 && d.Props["volmode"] != "none" {
					n++
				}
			}
		}
	})
	return n, nil
}

// Pools implements zfs.Devices.
func (h *Host) Pools() (pools []zfs.Pool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, z := range h.zpools {
		pools = append(pools, zfs.Pool{Name: name, State: z.State})
	}
	return pools, nil
}

// Locate implements zfs.Devices.
func (h *Host) Locate(_ context.Context, dataset string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, d := h.zpools.find(dataset); d == nil || d.Volsize == 0 {
		return errors.New("no such zvol")
	}
	delete(h.links, linkDir+dataset)
	return nil
}

const linkDir = "/dev/zvol/"

// Mislead makes the link to a zvol lead to another one.
func (h *Host) Mislead(link, to string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.links == nil {
		h.links = map[string]string{}
	}
	h.links[link] = to
}

// Mkfs is a provision.Mkfs that keeps the content of a zvol.
func (h *Host) Mkfs(_ context.Context, v provision.Volume, filesystem, _ string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	dataset, d := h.behind(v.Content.Source)
	if d == nil || provision.ZvolIdentity(dataset) != v.Content.Identity {
		return fmt.Errorf("%w: %s is another device: %s, not %s", provision.ErrUnavailable, v.Content.Source, dataset, v.Content.Identity)
	}
	d.Signature = filesystem
	return nil
}

// behind returns the zvol that a link leads to; mu is held.
func (h *Host) behind(link string) (name string, d *Dataset) {
	if to, wrong := h.links[link]; wrong {
		link = to
	}
	name = strings.TrimPrefix(link, linkDir)
	_, d = h.zpools.find(name)
	return name, d
}

// Forget implements zfs.Devices.
func (h *Host) Forget(string) {}

// Settle implements zfs.Devices.
func (h *Host) Settle(_ context.Context, dataset string) {
	h.On(dataset, func(d *Dataset) { d.Probed = false })
}

// WriteOut implements zfs.Devices.
func (h *Host) WriteOut(_ context.Context, dataset string, _ bool) (err error) {
	h.On(dataset, func(d *Dataset) { d.Content, d.Cached, d.headed, err = d.Content+d.Cached, "", true, d.Failing })
	return err
}

// Mounted implements zfs.Devices.
func (h *Host) Mounted(dataset string) bool { return h.Claimed(dataset) }

// Claimed implements zfs.Devices.
func (h *Host) Claimed(dataset string) (mounted bool) {
	h.On(dataset, func(d *Dataset) { mounted = d.Mounted })
	return mounted
}

func zpoolOf(name string) string {
	name, _, _ = strings.Cut(name, "@")
	name, _, _ = strings.Cut(name, "/")
	return name
}

func parentOf(name string) string {
	return name[:max(strings.LastIndexByte(name, '/'), 0)]
}

// zpools are those that are imported.
type zpools map[string]*Zpool

// find returns a dataset; mu is held.
func (all zpools) find(name string) (*Zpool, *Dataset) {
	z := all[zpoolOf(name)]
	if z == nil {
		return nil, nil
	}
	return z, z.Datasets[name]
}

// findSnapshot returns a snapshot with its dataset; mu is held.
func (all zpools) findSnapshot(name string) (*Dataset, *Snapshot) {
	of, at, _ := strings.Cut(name, "@")
	_, d := all.find(of)
	if d == nil {
		return nil, nil
	}
	return d, d.Snapshots[at]
}
