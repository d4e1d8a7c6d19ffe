package conformance

import (
	"testing"

	"berth.dev/berth/internal/provision"
)

func restores(_ *testing.T, c copies) {
	v := c.create(c.t, 1, units)
	c.Write(v, "before")
	s := c.take(1, 1)
	c.Write(v, "after!")
	if s.Volume != v.ID || s.Size != v.Size || s.Pool != v.Pool || s.Taken.IsZero() {
		c.t.Errorf("snapshot %+v of volume %+v", s, v)
	}
	restored := c.copied(2, units, ofSnapshot(1))
	c.holdsText(restored, "before")
	c.holdsText(v, "after!")
	if restored.Source != ofSnapshot(1) || restored.Size != v.Size {
		c.t.Errorf("restored %+v", restored)
	}
	c.holds(c.t, v, restored)
}

func outlivesVolume(_ *testing.T, c copies) {
	c.Write(c.create(c.t, 1, units), "kept")
	taken := c.take(1, 1)
	c.delete(c.t, 1)
	if again := c.take(1, 1); !isStill(taken, again) {
		c.t.Errorf("without its volume the snapshot is %+v, before it was %+v", again, taken)
	}
	c.holdsText(c.copied(2, units, ofSnapshot(1)), "kept")
}

func outlivesSnapshot(_ *testing.T, c copies) {
	c.Write(c.create(c.t, 1, units), "kept")
	c.take(1, 1)
	v := c.copied(2, units, ofSnapshot(1))
	if err := c.snapshotter().DeleteSnapshot(c.t.Context(), snapshotID(1)); err != nil {
		c.t.Fatal(err)
	}
	c.holdsText(v, "kept")
	if again := c.copied(2, units, ofSnapshot(1)); again != v {
		c.t.Errorf("repeated without the snapshot: %+v, want %+v", again, v)
	}
}

func clones(_ *testing.T, c copies) {
	v := c.create(c.t, 1, units)
	c.Write(v, "ours")
	clone := c.copied(2, units, ofVolume(1))
	c.holdsText(clone, "ours")
	c.Write(v, "mine")
	c.holdsText(clone, "ours")
	c.Write(clone, "your")
	c.holdsText(v, "mine")
	c.delete(c.t, 1)
	c.holdsText(clone, "your")
	c.holds(c.t, clone)
	if rest := c.pool(c.t).Snapshots; len(rest) > 0 {
		c.t.Errorf("the clone left snapshots: %+v", rest)
	}
}

func copyGrows(_ *testing.T, c copies) {
	c.Write(c.create(c.t, 1, units), "grown")
	c.take(1, 1)
	v := c.copied(2, units+2, ofSnapshot(1))
	if v.Size != (units+2)*c.unit {
		c.t.Errorf("the copy has %d bytes, want %d", v.Size, (units+2)*c.unit)
	}
	c.holdsText(v, "grown")
	for _, source := range []provision.Source{ofSnapshot(1), ofVolume(1)} {
		r := c.request(3, units-1)
		r.Source = source
		_, err := c.Provisioner.Create(c.t.Context(), r)
		wantError(c.t, err, provision.ErrInvalid)
	}
}

func copyKeepsFilesystem(_ *testing.T, c copies) {
	c.create(c.t, 1, units)
	c.format(c.t, 1, c.native())
	if s := c.take(1, 1); s.Filesystem != c.native() {
		c.t.Errorf("the snapshot bears %q", s.Filesystem)
	}
	for n, source := range map[int]provision.Source{2: ofSnapshot(1), 3: ofVolume(1)} {
		if v := c.copied(n, units, source); v.Filesystem != c.native() {
			c.t.Errorf("the copy of %+v bears %q", source, v.Filesystem)
		}
		c.format(c.t, n, c.native())
		c.made(c.t, n, 0)
	}
}

func copyKeepsRaw(_ *testing.T, c copies) {
	if c.Filesystem != "" {
		return // it is no block device
	}
	c.Write(c.create(c.t, 1, units), "theirs")
	c.format(c.t, 1, provision.Raw)
	if s := c.take(1, 1); s.Filesystem != provision.Raw {
		c.t.Errorf("the snapshot is recorded as %q", s.Filesystem)
	}
	for n, source := range map[int]provision.Source{2: ofSnapshot(1), 3: ofVolume(1)} {
		v := c.copied(n, units, source)
		c.format(c.t, n, provision.Raw)
		if again := c.copied(n, units, source); again != v || v.Filesystem != provision.Raw {
			c.t.Errorf("the copy of %+v is %+v, and asked for again %+v", source, v, again)
		}
		_, err := c.Provisioner.Format(c.t.Context(), provision.FormatRequest{ID: v.ID, Filesystem: provision.Ext4})
		wantError(c.t, err, provision.ErrConflict)
		c.made(c.t, n, 0)
		c.holdsText(v, "theirs")
	}
}

func copyBecomesRaw(_ *testing.T, c copies) {
	if c.Filesystem != "" {
		return // it is no block device
	}
	c.create(c.t, 1, units)
	c.take(1, 1)
	c.format(c.t, 1, provision.Raw)
	v := c.copied(2, units, ofSnapshot(1))
	if v.Filesystem != "" {
		c.t.Errorf("the copy of a blank volume is recorded as %q", v.Filesystem)
	}
	c.format(c.t, 2, provision.Raw)
	v.Filesystem = provision.Raw
	if again := c.copied(2, units, ofSnapshot(1)); again != v {
		c.t.Errorf("asked for again: %+v; want %+v", again, v)
	}
}

func copyKeepsBlankness(_ *testing.T, c copies) {
	c.create(c.t, 1, units)
	c.take(1, 1)
	c.format(c.t, 1, c.native())
	if v := c.copied(2, units, ofSnapshot(1)); v.Filesystem != "" {
		c.t.Errorf("the copy of a blank volume bears %q", v.Filesystem)
	}
}

func copyStaysInPool(_ *testing.T, c copies) {
	c.create(c.t, 1, units)
	c.take(1, 1)
	for _, source := range []provision.Source{ofSnapshot(1), ofVolume(1)} {
		r := c.request(2, units)
		r.Source, r.Pool.Name = source, "no-such-pool"
		if _, err := c.Provisioner.Create(c.t.Context(), r); err == nil {
			c.t.Errorf("%+v was copied into another pool", source)
		}
	}
	if v := c.pool(c.t).Volumes; len(v) != 1 {
		c.t.Errorf("the pool holds %+v", v)
	}
}

func inlineHasNoSource(_ *testing.T, c copies) {
	c.create(c.t, 1, units)
	r := c.inline(2)
	r.Source = ofVolume(1)
	_, err := c.Provisioner.Create(c.t.Context(), r)
	wantError(c.t, err, provision.ErrInvalid)
}
