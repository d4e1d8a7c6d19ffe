package conformance

import (
	"fmt"
	"testing"

	"berth.dev/berth/internal/provision"
)

// RunSnapshots runs the suite for provisioners with snapshots.
func RunSnapshots(t *testing.T, start func(*testing.T) Harness) {
	for name, test := range map[string]func(*testing.T, copies){
		"a volume from a snapshot holds the data of the snapshot":        restores,
		"a snapshot outlives the volume":                                 outlivesVolume,
		"a restored volume outlives the snapshot":                        outlivesSnapshot,
		"a clone and the source change independently":                    clones,
		"a copy may be larger and never smaller":                         copyGrows,
		"a copy keeps the filesystem of the source and is not formatted": copyKeepsFilesystem,
		"a snapshot of a blank volume is blank":                          copyKeepsBlankness,
		"a copy of a raw volume is raw, and is never formatted":          copyKeepsRaw,
		"a copy of a blank volume becomes a raw volume for a pod":        copyBecomesRaw,
		"a copy is in the pool of the source":                            copyStaysInPool,
		"a repeated request returns the same snapshot":                   repeatsSnapshot,
		"a snapshot of another volume under the same id is a conflict":   snapshotConflicts,
		"a volume of another source under the same id is a conflict":     sourceConflicts,
		"an unknown snapshot or source is not found":                     snapshotNotFound,
		"malformed ids are invalid":                                      snapshotInvalid,
		"a snapshot takes room and gives the room back":                  snapshotTakesRoom,
		"a snapshot without room leaves the pool unchanged":              snapshotNoSpace,
		"a snapshot leaves the spare alone":                              snapshotSpare,
		"an inline volume has no source":                                 inlineHasNoSource,
		"a restart sees the snapshots":                                   restartSeesSnapshots,
		"deleting a snapshot can be repeated":                            deletesSnapshot,
	} {
		t.Run(name, func(t *testing.T) { test(t, copies{newFixture(t, start(t)), t}) })
	}
}

// copies is a fixture whose provisioner has snapshots.
type copies struct {
	fixture
	t *testing.T
}

func (c copies) snapshotter() provision.Snapshotter {
	s, able := c.Provisioner.(provision.Snapshotter)
	if !able {
		c.t.Fatalf("a %T has no snapshots", c.Provisioner)
	}
	return s
}

func snapshotID(n int) string { return fmt.Sprintf("snap-conformance-%d", n) }

// take takes snapshot n of a volume, and waits until it can be used.
func (c copies) take(n, volume int) provision.Snapshot {
	c.t.Helper()
	s, err := c.snapshotter().Snapshot(c.t.Context(), provision.SnapshotRequest{ID: snapshotID(n), Volume: id(volume)})
	if err != nil {
		c.t.Fatalf("taking snapshot %d: %v", n, err)
	}
	for s.Copying {
		c.wait()
		if s, err = c.snapshotter().GetSnapshot(c.t.Context(), s.ID); err != nil {
			c.t.Fatalf("getting snapshot %d: %v", n, err)
		}
	}
	return s
}

// copied makes volume n from a source, and waits until it can be used.
func (c copies) copied(n int, units int64, from provision.Source) provision.Volume {
	c.t.Helper()
	r := c.request(n, units)
	r.Size, r.Source = units*c.unit, from
	v, err := c.Provisioner.Create(c.t.Context(), r)
	if err != nil {
		c.t.Fatalf("making volume %d from %+v: %v", n, from, err)
	}
	for v.Copying {
		c.wait()
		v = c.get(c.t, n)
	}
	return v
}

// wait waits for a change: the end of a copy is signalled.
func (c copies) wait() {
	c.t.Helper()
	select {
	case <-c.Provisioner.Changed():
	case <-c.t.Context().Done():
		c.t.Fatal(c.t.Context().Err())
	}
}

// holdsText fails unless a volume begins with a text.
func (c copies) holdsText(v provision.Volume, want string) {
	c.t.Helper()
	if got := c.Read(v, len(want)); got != want {
		c.t.Errorf("volume %s holds %q, want %q", v.ID, got, want)
	}
}

func ofSnapshot(n int) provision.Source { return provision.Source{Snapshot: snapshotID(n)} }
func ofVolume(n int) provision.Source   { return provision.Source{Volume: id(n)} }

// units is the size of the volumes of these tests; a filesystem fits on it.
const units = filesystemUnits
