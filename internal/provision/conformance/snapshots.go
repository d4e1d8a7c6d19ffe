package conformance

import (
	"fmt"
	"testing"

	"berth.dev/berth/internal/provision"
)

// RunSnapshots runs the suite for provisioners with snapshots.
func RunSnapshots(t *testing.T, start func(*testing.T) Harness) {
	for name, test := range map[string]func(*testing.T, copies){
		"a volume made from a snapshot holds what the snapshot was taken of": restores,
		"a snapshot outlives its volume":                                     outlivesVolume,
		"a volume outlives the snapshot it was made from":                    outlivesSnapshot,
		"a clone and its source go their own ways":                           clones,
		"a copy may be larger and never smaller":                             copyGrows,
		"a copy bears the filesystem of its source and is not formatted":     copyKeepsFilesystem,
		"a snapshot of a blank volume is blank":                              copyKeepsBlankness,
		"a copy of a raw volume is raw, and is never formatted":              copyKeepsRaw,
		"a copy of a blank volume is given to a pod like any other":          copyBecomesRaw,
		"a copy is in the pool of its source":                                copyStaysInPool,
		"a snapshot repeated is the same snapshot":                           repeatsSnapshot,
		"a snapshot of another volume under the same id is a conflict":       snapshotConflicts,
		"a volume of another source under the same id is a conflict":         sourceConflicts,
		"what is not there is not found":                                     snapshotNotFound,
		"ids that are none are invalid":                                      snapshotInvalid,
		"a snapshot takes room and gives it back":                            snapshotTakesRoom,
		"a snapshot for which there is no room leaves nothing":               snapshotNoSpace,
		"a snapshot leaves the spare alone":                                  snapshotSpare,
		"an inline volume has no source":                                     inlineHasNoSource,
		"a restart sees the snapshots":                                       restartSeesSnapshots,
		"deleting a snapshot can be repeated":                                deletesSnapshot,
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
