package conformance

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"berth.dev/berth/internal/provision"
)

// ManagedNode reports the pools of a node and makes them.
type ManagedNode interface {
	provision.Manager
	Report(ctx context.Context) ([]provision.Pool, error)
}

// Managed is a node without pools and without disks, with functions that change it.
type Managed struct {
	Node ManagedNode
	// Group is the volume group that the suite makes, or the filesystem of btrfs, or the zpool, made
	// as a stripe. Thin is a thin pool in the volume group; zero for the others.
	Group, Thin provision.PoolRef
	// Plug adds an empty disk and returns its name as a pool. All disks have one size of at
	// least 100 units.
	Plug func() (disk string)
	// Use writes to a disk, as a program other than Berth.
	Use func(disk string)
	// PutGroup makes the group, as a program other than Berth.
	PutGroup func()
	// Fill fills the data and the metadata of the thin pool, each to a number of percent.
	Fill func(data, metadata int)
	// Restart returns a new node over the same disks.
	Restart func() ManagedNode
}

// RunManager runs the suite for managers of volume groups, and of thin pools in them.
func RunManager(t *testing.T, start func(*testing.T) Managed) {
	RunGroupManager(t, start)
	runThinManager(t, start)
}

// RunGroupManager runs the part of the suite about pools that are made of disks: volume
// groups, filesystems of btrfs, or zpools.
func RunGroupManager(t *testing.T, start func(*testing.T) Managed) {
	for name, test := range map[string]func(*managed){
		"a group is made of the named disks":        (*managed).makes,
		"a group grows by disks that come later":    (*managed).grows,
		"a group without disks is not made":         (*managed).awaits,
		"a used disk is not taken":                  (*managed).sparesUsed,
		"a disk is taken once":                      (*managed).takesOnce,
		"a foreign group is left alone":             (*managed).leavesForeign,
		"many wishes at once make a single group":   (*managed).atOnce,
		"a restart changes nothing":                 (*managed).restarts,
		"an impossible wish for a group is invalid": (*managed).refusesGroups,
	} {
		t.Run(name, func(t *testing.T) { test(&managed{Managed: start(t), t: t}) })
	}
}

type managed struct {
	Managed
	t *testing.T
}

// ensure asks for a wish and fails unless its outcome has the wanted reason.
func (m *managed) ensure(w provision.PoolWish, want provision.Reason) provision.Outcome {
	m.t.Helper()
	got, err := m.Node.Ensure(m.t.Context(), w)
	if err != nil || got.Reason != want || got.Message == "" {
		m.t.Fatalf("%+v is %+v, %v; want %s", w, got, err, want)
	}
	return got
}

func (m *managed) group(disks ...string) provision.PoolWish {
	w := provision.PoolWish{Pool: m.Group, Disks: disks}
	if provision.TraitsOf(m.Group.Type).Layouts != nil {
		w.Layout = provision.Layout{Redundancy: provision.Stripe, Width: 1, Ashift: 12}
	}
	return w
}

// fits says whether a pool is about as large as the disks that it is made of, in bytes. ZFS
// keeps up to a tenth, and something of each disk, for itself, and so does btrfs.
func (m *managed) fits(p provision.Pool, disks int64) bool {
	least := disks - 4*p.Unit
	switch m.Group.Type {
	case provision.ZFS:
		least = disks/10*8 - 4*p.Unit
	case provision.Btrfs:
		least = disks/10*7 - 4*p.Unit
	}
	return p.Total >= least && p.Total <= disks+2*p.Unit
}

// pool returns a pool as reported; the zero value if it is not in the report.
func (m *managed) pool(name string) provision.Pool {
	m.t.Helper()
	pools, err := m.Node.Report(m.t.Context())
	if err != nil {
		m.t.Fatal(err)
	}
	i := slices.IndexFunc(pools, func(p provision.Pool) bool { return p.Name == name })
	if i < 0 {
		return provision.Pool{}
	}
	return pools[i]
}

// size returns the bytes of a pool, and fails if the pool has a problem.
func (m *managed) size(name string) int64 {
	m.t.Helper()
	p := m.pool(name)
	if p.Total <= 0 || p.Problem != "" {
		m.t.Fatalf("%s is reported as %+v", name, p)
	}
	return p.Total
}

func (m *managed) makes() {
	a, b := m.Plug(), m.Plug()
	before := m.size(a) + m.size(b)
	m.ensure(m.group(a, b), provision.PoolMade)
	m.ensure(m.group(), provision.PoolAsAsked)
	p := m.pool(m.Group.Name)
	if p.PoolRef != m.Group || p.Free != p.Total || p.Problem != "" || !m.fits(p, before) {
		m.t.Errorf("of disks of %d bytes was made %+v", before, p)
	}
	for _, disk := range []string{a, b} {
		if p := m.pool(disk); p.Free != 0 || p.Problem == "" {
			m.t.Errorf("the disk is still offered: %+v", p)
		}
	}
}

func (m *managed) grows() {
	first, second := m.Plug(), m.Plug()
	disks := m.size(first) + m.size(second)
	m.ensure(m.group(first), provision.PoolMade)
	before := m.size(m.Group.Name)
	m.ensure(m.group(second), provision.PoolGrown)
	m.ensure(m.group(), provision.PoolAsAsked)
	if p := m.pool(m.Group.Name); !m.fits(p, disks) || p.Total < 2*before {
		m.t.Errorf("of %d bytes became %+v, of disks of %d", before, p, disks)
	}
}

func (m *managed) awaits() {
	m.ensure(m.group(), provision.PoolAwaitsDisks)
	if p := m.pool(m.Group.Name); p.Total != 0 {
		m.t.Errorf("there is %+v", p)
	}
}

func (m *managed) sparesUsed() {
	used, empty := m.Plug(), m.Plug()
	m.Use(used)
	m.ensure(m.group(used), provision.DisksRefused)
	m.ensure(m.group(used, empty), provision.PoolMade)
	if group, disk := m.size(m.Group.Name), m.pool(used); group > disk.Total+2*m.pool(m.Group.Name).Unit {
		m.t.Errorf("the group has %d bytes, and each disk %d", group, disk.Total)
	}
}

func (m *managed) takesOnce() {
	disk := m.Plug()
	m.ensure(m.group(disk, disk), provision.PoolMade)
	m.ensure(m.group(disk), provision.DisksRefused)
}

func (m *managed) leavesForeign() {
	m.PutGroup()
	before, disk := m.size(m.Group.Name), m.Plug()
	m.ensure(m.group(disk), provision.PoolForeign)
	m.ensure(m.group(), provision.PoolForeign)
	if after, free := m.size(m.Group.Name), m.pool(disk).Free; after != before || free == 0 {
		m.t.Errorf("of %d bytes became %d, and the disk has %d free", before, after, free)
	}
}

func (m *managed) atOnce() {
	disk := m.Plug()
	outcomes := make(chan string, 10)
	for range cap(outcomes) {
		go func() {
			o, err := m.Node.Ensure(m.t.Context(), m.group(disk))
			outcomes <- fmt.Sprint(o.Reason, err)
		}()
	}
	counts := map[string]int{}
	for range cap(outcomes) {
		counts[<-outcomes]++
	}
	made := fmt.Sprint(provision.PoolMade, nil)
	if counts[made] != 1 {
		m.t.Errorf("the outcomes are %v, want one %q", counts, made)
	}
	m.ensure(m.group(), provision.PoolAsAsked)
}

func (m *managed) restarts() {
	m.ensure(m.group(m.Plug()), provision.PoolMade)
	group := m.size(m.Group.Name)
	m.Node = m.Restart()
	m.ensure(m.group(), provision.PoolAsAsked)
	if m.size(m.Group.Name) != group {
		m.t.Error("a restart changed the size")
	}
	m.ensure(m.group(m.Plug()), provision.PoolGrown) // so the restarted node knows it as Berth's
}

func (m *managed) refusesGroups() {
	asked := m.group("/dev/sda")
	fills := m.group()
	fills.Extension = provision.Extension{At: 80, By: 20}
	shared := m.group()
	shared.SizePercent = 50
	m.refuse(map[string]provision.PoolWish{
		"no pool":                                   {Disks: []string{"disk:a"}},
		"a path in place of a disk":                 asked,
		"an option":                                 {Pool: provision.PoolRef{Type: m.Group.Type, Name: "-f"}},
		"an extension of a group":                   fills,
		"a group with a share of itself":            shared,
		"a volume group with the name of a zpool":   {Pool: provision.PoolRef{Type: provision.LVM, Name: "zfs:tank"}},
		"a volume group with the layout of a zpool": {Pool: provision.PoolRef{Type: provision.LVM, Name: "vg"}, Layout: provision.Layout{Redundancy: provision.Mirror}},
	})
}

// refuse fails unless each of the wishes is ErrInvalid.
func (m *managed) refuse(wishes map[string]provision.PoolWish) {
	for name, w := range wishes {
		if o, err := m.Node.Ensure(m.t.Context(), w); err == nil {
			m.t.Errorf("%s: %+v, want an error", name, o)
		} else {
			wantError(m.t, err, provision.ErrInvalid)
		}
	}
}
