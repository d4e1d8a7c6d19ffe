package conformance

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"berth.dev/berth/internal/provision"
)

// model is the reference that a provisioner is compared with: a map and a sum.
type model struct {
	t       *testing.T
	f       fixture
	total   int64 // units
	volumes map[string]provision.Volume
}

// timeless is a test whose deadline rapid does not ask for: in a bubble there is none.
type timeless struct{ *testing.T }

func agreesWithModel(t *testing.T, f fixture) {
	rapid.Check(timeless{t}, func(rt *rapid.T) {
		for _, v := range f.pool(t).Volumes { // left by a sequence that failed
			expect(rt, f.Provisioner.Delete(rt.Context(), v.ID), nil)
		}
		f.settle(t)
		m := &model{t: t, f: f, total: f.pool(t).Free / f.unit, volumes: map[string]provision.Volume{}}
		defer func() { f = m.f }() // a restart replaces the provisioner
		rt.Repeat(map[string]func(*rapid.T){
			"create":  m.create,
			"expand":  m.expand,
			"format":  m.format,
			"delete":  m.delete,
			"get":     m.get,
			"restart": func(*rapid.T) { m.f.Provisioner = m.f.Restart() },
			"":        m.check,
		})
	})
}

func anyID(t *rapid.T) string { return id(rapid.IntRange(0, 3).Draw(t, "volume")) }

func (m *model) free() int64 {
	free := m.total
	for _, v := range m.volumes {
		free -= v.Size / m.f.unit
	}
	return free
}

func (m *model) create(t *rapid.T) {
	m.f.settle(m.t)
	r := provision.CreateRequest{ID: anyID(t), Pool: m.f.Pool, Wipe: m.f.Wipe, Tree: m.f.Filesystem}
	units := rapid.Int64Range(1, m.total/2).Draw(t, "units")
	spare := rapid.Int64Range(0, m.total/4).Draw(t, "spare")
	r.Size, r.Limits.Spare = units*m.f.unit, spare*m.f.unit
	got, err := m.f.Provisioner.Create(t.Context(), r)
	old, exists := m.volumes[r.ID]
	switch {
	case exists && old.Size != r.Size:
		expect(t, err, provision.ErrConflict)
	case !exists && units > m.free()-spare:
		expect(t, err, provision.ErrNoSpace)
	default:
		expect(t, err, nil)
		if !exists {
			m.volumes[r.ID] = provision.Volume{ID: r.ID, Pool: m.f.Pool, Size: r.Size, Content: got.Content}
		}
	}
}

func (m *model) expand(t *rapid.T) {
	m.f.settle(m.t)
	r := provision.ExpandRequest{ID: anyID(t)}
	units := rapid.Int64Range(1, m.total).Draw(t, "units")
	r.Size = units * m.f.unit
	_, err := m.f.Provisioner.Expand(t.Context(), r)
	v, exists := m.volumes[r.ID]
	switch {
	case !exists:
		expect(t, err, provision.ErrNotFound)
	case units-v.Size/m.f.unit > m.free():
		expect(t, err, provision.ErrNoSpace)
	default:
		expect(t, err, nil)
		v.Size = max(v.Size, r.Size)
		m.volumes[r.ID] = v
	}
}

func (m *model) format(t *rapid.T) {
	r := provision.FormatRequest{ID: anyID(t), Filesystem: m.f.native()}
	v, exists := m.volumes[r.ID]
	if exists && v.Size < filesystemUnits*m.f.unit {
		return // too small for a filesystem
	}
	_, err := m.f.Provisioner.Format(t.Context(), r)
	if !exists {
		expect(t, err, provision.ErrNotFound)
		return
	}
	expect(t, err, nil)
	v.Filesystem = r.Filesystem
	m.volumes[r.ID] = v
}

func (m *model) delete(t *rapid.T) {
	id := anyID(t)
	expect(t, m.f.Provisioner.Delete(t.Context(), id), nil)
	delete(m.volumes, id)
}

func (m *model) get(t *rapid.T) {
	id := anyID(t)
	got, err := m.f.Provisioner.Get(t.Context(), id)
	want, exists := m.volumes[id]
	if !exists {
		expect(t, err, provision.ErrNotFound)
		return
	}
	expect(t, err, nil)
	if got != want {
		t.Fatalf("Get returned %+v, want %+v", got, want)
	}
}

func (m *model) check(t *rapid.T) {
	pools, err := m.f.Provisioner.Report(t.Context())
	expect(t, err, nil)
	for _, p := range pools {
		if p.PoolRef != m.f.Pool {
			continue
		}
		free := p.Free
		for _, v := range p.Wiping {
			free += v.Size
		}
		if free != m.free()*m.f.unit || len(p.Volumes) != len(m.volumes) {
			t.Fatalf("%d bytes free or being wiped and volumes %+v, want %d and %+v", free, p.Volumes, m.free()*m.f.unit, m.volumes)
		}
		for _, v := range p.Volumes {
			if v != m.volumes[v.ID] {
				t.Fatalf("reported %+v, want %+v", v, m.volumes[v.ID])
			}
		}
		return
	}
	t.Fatalf("the report lacks the pool: %+v", pools)
}

func expect(t *rapid.T, err, class error) {
	if (class == nil && err != nil) || !errors.Is(err, class) {
		t.Fatalf("got error %v, want %v", err, class)
	}
}
