package zfs_test

import (
	"errors"
	"testing"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/zfs"
	"berth.dev/berth/internal/provision/zfs/zfstest"
)

// written makes a volume part of whose content is only in memory.
func written(t *testing.T, h *zfstest.Host) *zfs.Provisioner {
	p, _ := start(t, config(h))
	v := create(t, p, "pvc-1", 2)
	h.On(v.Content.Source, func(d *zfstest.Dataset) { d.Content, d.Cached, d.Written = "old and ", "new", true })
	return p
}

func content(h *zfstest.Host, id string) (text string) {
	h.On(devices+volumes+id, func(d *zfstest.Dataset) { text = d.Content })
	return text
}

func TestASnapshotHasAllDataWrittenBeforeIt(t *testing.T) {
	h := newHost()
	p := written(t, h)
	snap(t, p, "snap-1", "pvc-1")
	r := request("pvc-2", 2)
	r.Source.Snapshot = "snap-1"
	if _, err := p.Create(t.Context(), r); err != nil || content(h, "pvc-2") != "old and new" {
		t.Errorf("the copy holds %q, %v", content(h, "pvc-2"), err)
	}
}

func TestACloneHasAllDataWrittenBeforeIt(t *testing.T) {
	h := newHost()
	p := written(t, h)
	r := request("pvc-2", 2)
	r.Source.Volume = "pvc-1"
	if _, err := p.Create(t.Context(), r); err != nil || content(h, "pvc-2") != "old and new" {
		t.Errorf("the clone holds %q, %v", content(h, "pvc-2"), err)
	}
}

func TestNoCopyIsTakenOfAVolumeWhoseDataCannotBeWrittenOut(t *testing.T) {
	h := newHost()
	p := written(t, h)
	fail := func(err error) { h.On(devices+volumes+"pvc-1", func(d *zfstest.Dataset) { d.Failing = err }) }
	fail(errors.New("the disk is gone"))
	if _, err := p.Snapshot(t.Context(), provision.SnapshotRequest{ID: "snap-1", Volume: "pvc-1"}); !errors.Is(err, provision.ErrUnavailable) {
		t.Errorf("a snapshot: %v", err)
	}
	r := request("pvc-2", 2)
	r.Source.Volume = "pvc-1"
	if _, err := p.Create(t.Context(), r); !errors.Is(err, provision.ErrUnavailable) {
		t.Errorf("a clone: %v", err)
	}
	if pool := reported(t, p); len(pool.Volumes) != 1 || len(pool.Snapshots) != 0 {
		t.Errorf("made all the same: %+v", pool)
	}
	fail(nil)
	snap(t, p, "snap-1", "pvc-1")
	copied := made(t, p, r)
	fail(errors.New("the disk is gone"))
	if v, err := p.Create(t.Context(), r); err != nil || v != copied {
		t.Errorf("a clone that is there already: %+v, %v", v, err)
	}
}
