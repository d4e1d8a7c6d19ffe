package simcloud

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/shared"
	"berth.dev/berth/internal/provision/shared/simdisk"
)

// Config says what a cloud is like.
type Config struct {
	Clock clock.PassiveClock
	// Attach and Detach are how long an operation takes that attaches or detaches something, 13 seconds if
	// they are zero. One that finds nothing to do takes a second.
	Attach, Detach time.Duration
	// Appear is how long after an attach the machine has the device.
	Appear time.Duration
	// Slots is how many disks can be attached to a machine; 64 if it is zero.
	Slots int
	// Requests is how many changes the cloud takes in a Window; zero is any number.
	Requests int
	Window   time.Duration
	// Lag is how old a listing is.
	Lag time.Duration
	// Online: a disk can be made larger while it is attached.
	Online bool
	// Dir, if set, has the disks: each is made there before Create, and machines are nodes of processes of this
	// machine, as In has them.
	Dir string
}

// usual is how long an attach and a detach take.
const usual = 13 * time.Second

// Cloud is a simulated cloud.
type Cloud struct {
	c Config

	mu       sync.Mutex
	disks    map[string]*disk
	machines map[string]*machine
	// operations by their names; begun counts them.
	operations map[string]*operation
	begun      int
	changes    limiter
	faults
	tally Tally
}

var _ shared.Cloud = (*Cloud)(nil)

// disk is a disk of the cloud.
type disk struct {
	handle string
	bytes  int64
	shares int
	target *simdisk.Target
	socket socket
	// plugs are the disk as the kernels of machines have it.
	plugs map[string]*simdisk.Node
}

// machine is a virtual machine.
type machine struct {
	// slots have the attached disks, by their LUN.
	slots map[int]string
	// running is the machine's operation, if one is under way.
	running *operation
	// appearing are devices that are not there yet, by disk.
	appearing map[string]time.Time
	// past is what a listing may say: what was attached from which time on.
	past []listing
}

type listing struct {
	from  time.Time
	disks []string
}

// New makes a cloud without disks and machines.
func New(c Config) *Cloud {
	c.Attach, c.Detach, c.Slots = cmp.Or(c.Attach, usual), cmp.Or(c.Detach, usual), cmp.Or(c.Slots, 64)
	return &Cloud{c: c, disks: map[string]*disk{}, machines: map[string]*machine{}, operations: map[string]*operation{}, tally: Tally{Calls: map[string]int{}}}
}

// AddMachine adds a machine, and RemoveMachine deletes it, with all that is attached to it.
func (c *Cloud) AddMachine(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.machines[name] = &machine{slots: map[int]string{}, appearing: map[string]time.Time{}, past: []listing{{}}}
}

// RemoveMachine deletes a machine.
func (c *Cloud) RemoveMachine(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settle()
	if m := c.machines[name]; m != nil {
		for _, handle := range slices.Collect(maps.Values(m.slots)) {
			c.disks[handle].unplug(name)
		}
	}
	delete(c.machines, name)
}

// Spec of a disk.
type Spec struct {
	Identity provision.Identity
	Bytes    int64
	// Shares is to how many machines it can be attached at once.
	Shares int
}

// Create makes a disk. One that is there already, and is the same, is no error.
func (c *Cloud) Create(ctx context.Context, handle string, s Spec) error {
	return c.change(ctx, "create", handle, func() error {
		if old := c.disks[handle]; old != nil {
			if old.bytes != s.Bytes || old.shares != s.Shares {
				return fmt.Errorf("%w: there is another disk %s", provision.ErrConflict, handle)
			}
			return nil
		}
		d := &disk{handle: handle, bytes: s.Bytes, shares: s.Shares, plugs: map[string]*simdisk.Node{}}
		if err := d.place(c.c.Dir, s.Identity); err != nil {
			return err
		}
		c.disks[handle] = d
		return nil
	})
}

// place makes the disk's target: in memory, or in a directory of disks.
func (d *disk) place(disks string, identity provision.Identity) error {
	if disks == "" {
		d.target = simdisk.New(simdisk.Config{Identity: identity, Shares: 1 << 10, Persistent: true})
		d.socket = memory{d.target}
		return nil
	}
	name, err := simdisk.NameOf(Scheme, d.handle)
	if err != nil {
		return err
	}
	dir := filepath.Join(disks, name)
	if d.target, err = simdisk.OpenDisk(dir); err != nil {
		return err
	}
	d.socket = directory{memory{d.target}, dir}
	return nil
}

// Delete deletes a disk that is attached to no machine.
func (c *Cloud) Delete(ctx context.Context, handle string) error {
	return c.change(ctx, "delete", handle, func() error {
		if at := c.attachedTo(handle); len(at) > 0 {
			return fmt.Errorf("%w: disk %s is attached to %q", provision.ErrInUse, handle, at)
		}
		delete(c.disks, handle)
		return nil
	})
}

// Expand makes a disk larger. Most clouds do not make one larger that is shared and attached.
func (c *Cloud) Expand(ctx context.Context, handle string, bytes int64) error {
	return c.change(ctx, "expand", handle, func() error {
		d := c.disks[handle]
		switch at := c.attachedTo(handle); {
		case d == nil:
			return fmt.Errorf("%w: there is no disk %s", provision.ErrNotFound, handle)
		case d.bytes >= bytes:
			return nil
		case len(at) > 0 && !c.c.Online:
			return fmt.Errorf("%w: disk %s is attached to %q, and can be made larger only while it is not", provision.ErrInUse, handle, at)
		}
		d.bytes = bytes
		return nil
	})
}

// Disk returns the target of a disk, and Bytes its size; nil and zero if there is none.
func (c *Cloud) Disk(handle string) (target *simdisk.Target, bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d := c.disks[handle]; d != nil {
		return d.target, d.bytes
	}
	return nil, 0
}

// At returns the machines to which a disk is attached now, in truth.
func (c *Cloud) At(handle string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settle()
	return c.attachedTo(handle)
}

func (c *Cloud) attachedTo(handle string) (at []string) {
	for _, name := range slices.Sorted(maps.Keys(c.machines)) {
		if c.machines[name].has(handle) {
			at = append(at, name)
		}
	}
	return at
}

func (m *machine) has(handle string) bool {
	return slices.Contains(slices.Collect(maps.Values(m.slots)), handle)
}

// free is the lowest LUN that is free; false if there is none.
func (m *machine) free(slots int) (lun int, ok bool) {
	for lun := range slots {
		if _, used := m.slots[lun]; !used {
			return lun, true
		}
	}
	return 0, false
}

// note keeps what a listing may say later.
func (m *machine) note(now time.Time) {
	m.past = append(m.past, listing{now, slices.Sorted(maps.Values(m.slots))})
}
