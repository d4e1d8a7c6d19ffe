package conformance

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"berth.dev/berth/internal/provision"
)

func repeatsSnapshot(_ *testing.T, c copies) {
	v := c.create(c.t, 1, units)
	c.Write(v, "first")
	taken, before := c.take(1, 1), c.pool(c.t)
	c.Write(v, "later")
	if again := c.take(1, 1); !isStill(taken, again) {
		c.t.Errorf("the second time: %+v, the first time: %+v", again, taken)
	}
	if got, err := c.snapshotter().GetSnapshot(c.t.Context(), taken.ID); err != nil || !isStill(taken, got) {
		c.t.Errorf("got %+v, %v", got, err)
	}
	if diff := cmp.Diff(before, c.pool(c.t), toBeMeasured); diff != "" {
		c.t.Errorf("the pool changed by repeating (-before +after):\n%s", diff)
	}
	c.holdsText(c.copied(2, units, ofSnapshot(1)), "first")
}

// isStill says whether a snapshot is unchanged. Its Allocated bytes may shrink: a provisioner
// may learn them later, and reports the largest possible number until then.
func isStill(was, is provision.Snapshot) bool {
	if is.Allocated > was.Allocated {
		return false
	}
	is.Allocated = was.Allocated
	return is == was
}

// toBeMeasured ignores Allocated, and the pool's Free, which depends on it.
var toBeMeasured = cmp.Options{cmpopts.IgnoreFields(provision.Snapshot{}, "Allocated"), cmpopts.IgnoreFields(provision.Pool{}, "Free")}

func snapshotConflicts(_ *testing.T, c copies) {
	c.create(c.t, 1, units)
	c.create(c.t, 2, units)
	c.take(1, 1)
	_, err := c.snapshotter().Snapshot(c.t.Context(), provision.SnapshotRequest{ID: snapshotID(1), Volume: id(2)})
	wantError(c.t, err, provision.ErrConflict)
}

func sourceConflicts(_ *testing.T, c copies) {
	c.create(c.t, 1, units)
	c.take(1, 1)
	c.take(2, 1)
	c.copied(2, units, ofSnapshot(1))
	for _, source := range []provision.Source{{}, ofSnapshot(2), ofVolume(1)} {
		r := c.request(2, units)
		r.Size, r.Source = units*c.unit, source
		_, err := c.Provisioner.Create(c.t.Context(), r)
		wantError(c.t, err, provision.ErrConflict)
	}
}

func snapshotNotFound(_ *testing.T, c copies) {
	s := c.snapshotter()
	_, err := s.GetSnapshot(c.t.Context(), snapshotID(1))
	wantError(c.t, err, provision.ErrNotFound)
	_, err = s.Snapshot(c.t.Context(), provision.SnapshotRequest{ID: snapshotID(1), Volume: id(1)})
	wantError(c.t, err, provision.ErrNotFound)
	for _, source := range []provision.Source{ofSnapshot(1), ofVolume(1)} {
		r := c.request(2, units)
		r.Source = source
		_, err = c.Provisioner.Create(c.t.Context(), r)
		wantError(c.t, err, provision.ErrNotFound)
	}
	c.holds(c.t)
}

func snapshotInvalid(_ *testing.T, c copies) {
	s, ctx := c.snapshotter(), c.t.Context()
	for _, bad := range []string{"", "snap-", "snap-a/b", "-f", id(1), "snap-a-"} {
		_, err := s.Snapshot(ctx, provision.SnapshotRequest{ID: bad, Volume: id(1)})
		wantError(c.t, err, provision.ErrInvalid)
		_, err = s.GetSnapshot(ctx, bad)
		wantError(c.t, err, provision.ErrInvalid)
		wantError(c.t, s.DeleteSnapshot(ctx, bad), provision.ErrInvalid)
	}
	r := c.request(1, units)
	r.Source = provision.Source{Snapshot: snapshotID(1), Volume: id(2)}
	_, err := c.Provisioner.Create(ctx, r)
	wantError(c.t, err, provision.ErrInvalid)
}

func snapshotTakesRoom(_ *testing.T, c copies) {
	c.create(c.t, 1, units)
	before := c.pool(c.t)
	s := c.take(1, 1)
	p := c.pool(c.t)
	if len(p.Snapshots) != 1 || !isStill(s, p.Snapshots[0]) {
		c.t.Fatalf("the report's snapshots are %+v, want %+v", p.Snapshots, s)
	}
	if room := p.Snapshots[0].Allocated; before.Free-p.Free != room || p.Foreign != before.Foreign {
		c.t.Errorf("the pool went from %+v to %+v for a snapshot of %d bytes", before, p, room)
	}
	if err := c.snapshotter().DeleteSnapshot(c.t.Context(), s.ID); err != nil {
		c.t.Fatal(err)
	}
	if diff := cmp.Diff(before, c.pool(c.t)); diff != "" {
		c.t.Errorf("the pool without the snapshot (-before +after):\n%s", diff)
	}
}

func snapshotNoSpace(_ *testing.T, c copies) {
	v := c.create(c.t, 1, c.pool(c.t).Free/c.unit-1)
	_, err := c.snapshotter().Snapshot(c.t.Context(), provision.SnapshotRequest{ID: snapshotID(1), Volume: v.ID})
	wantError(c.t, err, provision.ErrNoSpace)
	r := c.request(2, units)
	r.Size, r.Source = v.Size, ofVolume(1)
	_, err = c.Provisioner.Create(c.t.Context(), r)
	wantError(c.t, err, provision.ErrNoSpace)
	c.holds(c.t, v)
	if p := c.pool(c.t); p.Free != c.unit || len(p.Snapshots) != 0 {
		c.t.Errorf("what was refused left the pool with %+v", p)
	}
}

func snapshotSpare(_ *testing.T, c copies) {
	c.create(c.t, 1, units)
	r := provision.SnapshotRequest{ID: snapshotID(1), Volume: id(1), Limits: provision.Limits{SparePercent: 100}}
	_, err := c.snapshotter().Snapshot(c.t.Context(), r)
	wantError(c.t, err, provision.ErrNoSpace)
}

func restartSeesSnapshots(_ *testing.T, c copies) {
	c.Write(c.create(c.t, 1, units), "kept")
	s := c.take(1, 1)
	v := c.copied(2, units, ofSnapshot(1))
	c.Provisioner = c.Restart()
	if got, err := c.snapshotter().GetSnapshot(c.t.Context(), s.ID); err != nil || !isStill(s, got) {
		c.t.Errorf("after a restart the snapshot is %+v, %v; before it was %+v", got, err, s)
	}
	if got := c.get(c.t, 2); got != v {
		c.t.Errorf("after a restart the copy is %+v; before it was %+v", got, v)
	}
	c.holdsText(v, "kept")
}

func deletesSnapshot(_ *testing.T, c copies) {
	c.create(c.t, 1, units)
	c.take(1, 1)
	for range 2 {
		if err := c.snapshotter().DeleteSnapshot(c.t.Context(), snapshotID(1)); err != nil {
			c.t.Fatal(err)
		}
	}
	_, err := c.snapshotter().GetSnapshot(c.t.Context(), snapshotID(1))
	wantError(c.t, err, provision.ErrNotFound)
}
