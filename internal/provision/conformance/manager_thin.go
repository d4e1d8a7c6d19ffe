package conformance

import (
	"strings"
	"testing"

	"berth.dev/berth/internal/provision"
)

// runThinManager runs the part of the suite that is about thin pools in volume groups.
func runThinManager(t *testing.T, start func(*testing.T) Managed) {
	for name, test := range map[string]func(*managed){
		"a thin pool without a volume group is not made":                 (*managed).awaitsGroup,
		"a thin pool takes and keeps a share of the group":               (*managed).shares,
		"a thin pool is not made in a foreign group":                     (*managed).sparesForeignGroup,
		"a thin pool without a wish is not made":                         (*managed).makesNoneUnasked,
		"a thin pool that fills up is extended while the group has room": (*managed).extends,
		"a restart changes no thin pool":                                 (*managed).restartsThin,
		"an impossible wish for a thin pool is invalid":                  (*managed).refuses,
	} {
		t.Run(name, func(t *testing.T) { test(&managed{Managed: start(t), t: t}) })
	}
}

func (m *managed) thin(percent int) provision.PoolWish {
	return provision.PoolWish{Pool: m.Thin, SizePercent: percent, Extension: provision.Extension{At: 80, By: 20}}
}

func (m *managed) awaitsGroup() { m.ensure(m.thin(50), provision.PoolAwaitsDisks) }

func (m *managed) shares() {
	m.ensure(m.group(m.Plug()), provision.PoolMade)
	m.ensure(m.thin(50), provision.PoolMade)
	m.ensure(m.thin(50), provision.PoolAsAsked)
	p, before := m.pool(m.Thin.Name), m.size(m.Group.Name)
	if p.PoolRef != m.Thin || p.Free != p.Total || p.Problem != "" || p.Total > before/2 || p.Total < before/2-p.Unit {
		m.t.Errorf("of a group of %d bytes was made %+v", before, p)
	}
	m.ensure(m.thin(20), provision.PoolAsAsked) // it has more
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

func (m *managed) restartsThin() {
	m.ensure(m.group(m.Plug()), provision.PoolMade)
	m.ensure(m.thin(50), provision.PoolMade)
	thin := m.size(m.Thin.Name)
	m.Node = m.Restart()
	m.ensure(m.thin(50), provision.PoolAsAsked)
	if m.size(m.Thin.Name) != thin {
		m.t.Error("a restart changed the size")
	}
}

func (m *managed) refuses() {
	m.refuse(map[string]provision.PoolWish{
		"a thin pool made of disks":                   {Pool: m.Thin, Disks: []string{"disk:a"}},
		"a share of more than the group":              {Pool: m.Thin, SizePercent: 101},
		"an extension at one percent":                 {Pool: m.Thin, Extension: provision.Extension{At: 1, By: 20}},
		"an extension by zero":                        {Pool: m.Thin, Extension: provision.Extension{At: 80}},
		"a thin pool with the type of a volume group": {Pool: provision.PoolRef{Type: provision.LVM, Name: m.Thin.Name}},
	})
}
