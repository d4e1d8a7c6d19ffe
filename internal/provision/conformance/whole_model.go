package conformance

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"berth.dev/berth/internal/provision"
)

// wholeModel is the reference for a provisioner of whole pools: a map from pool to volume.
type wholeModel struct {
	t       *testing.T
	f       fixture
	units   map[provision.PoolRef]int64
	volumes map[provision.PoolRef]provision.Volume
}

func agreesWithWholeModel(t *testing.T, f fixture) {
	units := map[provision.PoolRef]int64{}
	for i := range f.Pools {
		on := f.on(t, i)
		units[on.Pool] = on.unit
	}
	rapid.Check(t, func(rt *rapid.T) {
		for i := range f.Pools { // volumes left by a sequence that failed
			for _, v := range f.on(t, i).pool(t).Volumes {
				expect(rt, f.Provisioner.Delete(rt.Context(), v.ID), nil)
			}
		}
		f.settle(t)
		m := &wholeModel{t: t, f: f, units: units, volumes: map[provision.PoolRef]provision.Volume{}}
		defer func() { f = m.f }() // a restart replaces the provisioner
		rt.Repeat(map[string]func(*rapid.T){
			"create":  m.create,
			"expand":  m.expand,
			"format":  m.format,
			"delete":  m.delete,
			"restart": func(*rapid.T) { m.f.Provisioner = m.f.Restart() },
			"":        m.check,
		})
	})
}

// volume returns a volume of the model.
func (m *wholeModel) volume(id string) (v provision.Volume, exists bool) {
	for _, v := range m.volumes {
		if v.ID == id {
			return v, true
		}
	}
	return provision.Volume{}, false
}

func (m *wholeModel) create(t *rapid.T) {
	r := provision.CreateRequest{ID: anyID(t), Pool: rapid.SampledFrom(m.f.Pools).Draw(t, "pool")}
	unit := m.units[r.Pool]
	r.Size = rapid.SampledFrom([]int64{1, unit - 1, unit, unit + 1}).Draw(t, "size")
	m.f.settle(m.t)
	got, err := m.f.Provisioner.Create(t.Context(), r)
	old, exists := m.volume(r.ID)
	_, taken := m.volumes[r.Pool]
	switch {
	case exists && (old.Pool != r.Pool || r.Size > unit):
		expect(t, err, provision.ErrConflict)
	case !exists && (taken || r.Size > unit):
		expect(t, err, provision.ErrNoSpace)
	default:
		expect(t, err, nil)
		if !exists {
			m.volumes[r.Pool] = provision.Volume{ID: r.ID, Pool: r.Pool, Size: unit, Content: got.Content}
		}
	}
}

func (m *wholeModel) expand(t *rapid.T) {
	r := provision.ExpandRequest{ID: anyID(t), Size: rapid.SampledFrom([]int64{1, provision.MaxSize}).Draw(t, "size")}
	_, err := m.f.Provisioner.Expand(t.Context(), r)
	v, exists := m.volume(r.ID)
	switch {
	case !exists:
		expect(t, err, provision.ErrNotFound)
	case r.Size > v.Size:
		expect(t, err, provision.ErrNoSpace)
	default:
		expect(t, err, nil)
	}
}

func (m *wholeModel) format(t *rapid.T) {
	r := provision.FormatRequest{ID: anyID(t), Filesystem: provision.Ext4}
	_, err := m.f.Provisioner.Format(t.Context(), r)
	v, exists := m.volume(r.ID)
	if !exists {
		expect(t, err, provision.ErrNotFound)
		return
	}
	expect(t, err, nil)
	v.Filesystem = r.Filesystem
	m.volumes[v.Pool] = v
}

func (m *wholeModel) delete(t *rapid.T) {
	id := anyID(t)
	expect(t, m.f.Provisioner.Delete(t.Context(), id), nil)
	_, err := m.f.Provisioner.Get(t.Context(), id)
	expect(t, err, provision.ErrNotFound)
	maps.DeleteFunc(m.volumes, func(_ provision.PoolRef, v provision.Volume) bool { return v.ID == id })
}

func (m *wholeModel) check(t *rapid.T) {
	pools, err := m.f.Provisioner.Report(t.Context())
	expect(t, err, nil)
	for _, ref := range m.f.Pools {
		i := slices.IndexFunc(pools, func(p provision.Pool) bool { return p.PoolRef == ref })
		if i < 0 {
			t.Fatalf("the report lacks pool %v: %+v", ref, pools)
		}
		want, taken := m.volumes[ref]
		switch p := pools[i]; {
		case taken && (len(p.Volumes) != 1 || p.Volumes[0] != want || p.Free != 0):
			t.Fatalf("reported %+v, want it to hold %+v", p, want)
		case !taken && len(p.Volumes) != 0:
			t.Fatalf("reported %+v, want it empty", p)
		}
	}
}
