package conformance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"berth.dev/berth/internal/provision"
)

// ManagedNode is what reports the pools of a node and makes them.
type ManagedNode interface {
	provision.Manager
	Report(ctx context.Context) ([]provision.Pool, error)
}

// Managed is a node without pools and without disks, and hands to change it with.
type Managed struct {
	Node ManagedNode
	// Group is the volume group that is made, and Thin a thin pool in it.
	Group, Thin provision.PoolRef
	// Plug puts an empty disk in, all of one size of at least 100 units, and returns its
	// name as a pool.
	Plug func() (disk string)
	// Use writes to a disk as others do.
	Use func(disk string)
	// PutGroup makes the group as others do.
	PutGroup func()
	// Fill fills the data and the metadata of the thin pool to so many percent.
	Fill func(data, metadata int)
	// Restart returns a new node over the same disks.
	Restart func() ManagedNode
}

// RunManager runs the suite for what makes pools.
func RunManager(t *testing.T, start func(*testing.T) Managed) {
	for name, test := range map[string]func(*managed){
		"a group is made of the disks that are named":           (*managed).makes,
		"a group grows by disks that come later":                (*managed).grows,
		"without a disk there is no group":                      (*managed).awaits,
		"a disk that others use is not taken":                   (*managed).sparesUsed,
		"a disk is taken once":                                  (*managed).takesOnce,
		"a group of others is left as it is":                    (*managed).leavesForeign,
		"many wishes at once make one group":                    (*managed).atOnce,
		"a thin pool has its share of a group and keeps it":     (*managed).shares,
		"a thin pool is not made in a group of others":          (*managed).sparesForeignGroup,
		"a thin pool that nobody asks for is not made":          (*managed).makesNoneUnasked,
		"a thin pool that fills up is extended while it can be": (*managed).extends,
		"a restart changes nothing":                             (*managed).restarts,
		"a wish that can never be met is invalid":               (*managed).refuses,
	} {
		t.Run(name, func(t *testing.T) { test(&managed{Managed: start(t), t: t}) })
	}
}

type managed struct {
	Managed
	t *testing.T
}

// ensure holds the outcome of a wish against what is wanted.
func (m *managed) ensure(w provision.PoolWish, want provision.Reason) provision.Outcome {
	m.t.Helper()
	got, err := m.Node.Ensure(m.t.Context(), w)
	if err != nil || got.Reason != want || got.Message == "" {
		m.t.Fatalf("%+v is %+v, %v; want %s", w, got, err, want)
	}
	return got
}

func (m *managed) group(disks ...string) provision.PoolWish {
	return provision.PoolWish{Pool: m.Group, Disks: disks}
}

func (m *managed) thin(percent int) provision.PoolWish {
	return provision.PoolWish{Pool: m.Thin, SizePercent: percent, Extension: provision.Extension{At: 80, By: 20}}
}

// pool is one as reported; the zero value if it is not.
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

// size of a pool that works.
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
	if p.PoolRef != m.Group || p.Free != p.Total || p.Problem != "" || p.Total > before+2*p.Unit || p.Total < before-4*p.Unit {
		m.t.Errorf("of disks of %d bytes was made %+v", before, p)
	}
	for _, disk := range []string{a, b} {
		if p := m.pool(disk); p.Free != 0 || p.Problem == "" {
			m.t.Errorf("the disk is still offered: %+v", p)
		}
	}
}

func (m *managed) grows() {
	m.ensure(m.group(m.Plug()), provision.PoolMade)
	before := m.size(m.Group.Name)
	m.ensure(m.group(m.Plug()), provision.PoolGrown)
	m.ensure(m.group(), provision.PoolAsAsked)
	if after := m.size(m.Group.Name); after != 2*before {
		m.t.Errorf("of %d bytes became %d", before, after)
	}
}

func (m *managed) awaits() {
	m.ensure(m.group(), provision.PoolAwaitsDisks)
	m.ensure(m.thin(50), provision.PoolAwaitsDisks)
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

func (m *managed) shares() {
	m.ensure(m.group(m.Plug()), provision.PoolMade)
	m.ensure(m.thin(50), provision.PoolMade)
	m.ensure(m.thin(50), provision.PoolAsAsked)
	p, before := m.pool(m.Thin.Name), m.size(m.Group.Name)
	if p.PoolRef != m.Thin || p.Free != p.Total || p.Problem != "" || p.Total > before/2 || p.Total < before/2-p.Unit {
		m.t.Errorf("of a group of %d bytes was made %+v", before, p)
	}
	m.ensure(m.thin(20), provision.PoolAsAsked) // which it has
	m.ensure(m.group(m.Plug()), provision.PoolGrown)
	m.ensure(m.thin(50), provision.PoolGrown)
	m.ensure(m.thin(50), provision.PoolAsAsked)
	if after := m.size(m.Thin.Name); after < 2*p.Total || after > before {
		m.t.Errorf("of %d bytes became %d", p.Total, after)
	}
}

func (m *managed) sparesForeignGroup() {
	m.PutGroup()
	m.ensure(m.thin(50), provision.PoolForeign)
	if p := m.pool(m.Thin.Name); p.Total != 0 {
		m.t.Errorf("made %+v", p)
	}
}

func (m *managed) makesNoneUnasked() {
	m.ensure(m.group(m.Plug()), provision.PoolMade)
	m.ensure(m.thin(0), provision.PoolAbsent)
}

func (m *managed) extends() {
	m.ensure(m.group(m.Plug()), provision.PoolMade)
	m.ensure(m.thin(70), provision.PoolMade)
	before := m.size(m.Thin.Name)
	m.Fill(70, 10)
	m.ensure(m.thin(70), provision.PoolAsAsked)
	m.Fill(85, 10)
	m.ensure(m.thin(70), provision.PoolExtended)
	if after := m.size(m.Thin.Name); after < before+before/10 || after > before+before/4 {
		m.t.Errorf("of %d bytes became %d", before, after)
	}
	for range 10 {
		m.Fill(99, 10)
		o, err := m.Node.Ensure(m.t.Context(), m.thin(70))
		if err != nil {
			m.t.Fatal(err)
		}
		if o.Reason == provision.PoolNoRoom {
			if group := m.pool(m.Group.Name); group.Free < 0 || !strings.Contains(o.Message, "room") && !strings.Contains(o.Message, "free") {
				m.t.Errorf("%+v, and the group is %+v", o, group)
			}
			return
		}
	}
	m.t.Error("a pool is extended for ever")
}

func (m *managed) restarts() {
	m.ensure(m.group(m.Plug()), provision.PoolMade)
	m.ensure(m.thin(50), provision.PoolMade)
	group, thin := m.size(m.Group.Name), m.size(m.Thin.Name)
	m.Node = m.Restart()
	m.ensure(m.group(), provision.PoolAsAsked)
	m.ensure(m.thin(50), provision.PoolAsAsked)
	if m.size(m.Group.Name) != group || m.size(m.Thin.Name) != thin {
		m.t.Error("a restart changed the sizes")
	}
	m.ensure(m.group(m.Plug()), provision.PoolGrown) // it is known for Berth's own
}

func (m *managed) refuses() {
	for name, w := range map[string]provision.PoolWish{
		"no pool":                   {Disks: []string{"disk:a"}},
		"a disk that is none":       {Pool: m.Group, Disks: []string{"/dev/sda"}},
		"an option":                 {Pool: provision.PoolRef{Type: provision.LVM, Name: "-f"}},
		"a group that fills up":     {Pool: m.Group, Extension: provision.Extension{At: 80, By: 20}},
		"a thin pool made of disks": {Pool: m.Thin, Disks: []string{"disk:a"}},
		"more than the group":       {Pool: m.Thin, SizePercent: 101},
		"an extension at once":      {Pool: m.Thin, Extension: provision.Extension{At: 1, By: 20}},
		"an extension by nothing":   {Pool: m.Thin, Extension: provision.Extension{At: 80}},
		"a thin pool as its group":  {Pool: provision.PoolRef{Type: provision.LVM, Name: m.Thin.Name}},
	} {
		if o, err := m.Node.Ensure(m.t.Context(), w); err == nil {
			m.t.Errorf("%s: %+v, want an error", name, o)
		} else {
			wantError(m.t, err, provision.ErrInvalid)
		}
	}
}
