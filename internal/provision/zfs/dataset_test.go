package zfs_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/provision/zfs/zfstest"
)

func TestConformanceOfDatasetsOnPlayedZFS(t *testing.T) { conformance.Run(t, datasetHarness) }

func TestConformanceOfDatasetSnapshotsOnPlayedZFS(t *testing.T) {
	conformance.RunSnapshots(t, datasetHarness)
}

func datasetHarness(t *testing.T) conformance.Harness {
	host := newHost()
	h := harnessOf(t, host)
	h.Filesystem = provision.Dataset
	h.Open = func(v provision.Volume) func() {
		host.On(v.Content.Source, func(d *zfstest.Dataset) { d.Mounted = true })
		return func() { host.On(v.Content.Source, func(d *zfstest.Dataset) { d.Mounted = false }) }
	}
	return h
}

// dataset asks for a volume that is a filesystem.
func dataset(id string, units int64) provision.CreateRequest {
	r := request(id, units)
	r.Tree = provision.Dataset
	return r
}

func made(t *testing.T, p provision.Provisioner, r provision.CreateRequest) provision.Volume {
	t.Helper()
	v, err := p.Create(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestADatasetHasThePropertiesOfAPodsFilesystem(t *testing.T) {
	h := newHost()
	p, _ := start(t, config(h))
	r := dataset("pvc-1", 8)
	r.Tuning = provision.Tuning{BlockSize: 64 << 10, Compression: "zstd-3", RecordSize: 8 << 10}
	v := made(t, p, r)
	if v.Content.Source != volumes+"pvc-1" || v.Size != 8*unit || v.Filesystem != "" {
		t.Errorf("made %+v", v)
	}
	size := fmt.Sprint(8 * unit)
	want := map[string]string{
		"mountpoint": "legacy", "canmount": "noauto", "xattr": "sa", "acltype": "posixacl",
		"refquota": size, "refreservation": size, "recordsize": "8192", "compression": "zstd-3",
	}
	h.On(v.Content.Source, func(d *zfstest.Dataset) {
		if diff := cmp.Diff(want, d.Props, cmpopts.IgnoreMapEntries(isBerths)); diff != "" || d.Volsize != 0 {
			t.Errorf("a dataset of %d bytes has (-want +got):\n%s", d.Volsize, diff)
		}
	})
}

func isBerths(key, _ string) bool { return len(key) > 9 && key[:10] == "berth.dev:" }

func TestACopyOfADatasetIsOneOfItsOwnClass(t *testing.T) {
	h := newHost()
	p, _ := start(t, config(h))
	r := dataset("pvc-1", 8)
	r.Tuning.RecordSize = 8 << 10
	made(t, p, r)
	r = dataset("pvc-2", 9)
	r.Source.Volume, r.Tuning.RecordSize = "pvc-1", 1<<20
	h.On(made(t, p, r).Content.Source, func(d *zfstest.Dataset) {
		if d.Props["recordsize"] != "1048576" || d.Props["mountpoint"] != "legacy" || d.Refquota != 9*unit || d.Refreservation != 9*unit {
			t.Errorf("the copy is %+v", d)
		}
	})
}

func TestACopyIsOfTheKindOfItsSource(t *testing.T) {
	h := newHost()
	p, _ := start(t, config(h))
	made(t, p, request("pvc-zvol", 8))
	made(t, p, dataset("pvc-dataset", 8))
	for id, source := range map[string]string{"snap-zvol": "pvc-zvol", "snap-dataset": "pvc-dataset"} {
		if _, err := p.Snapshot(t.Context(), provision.SnapshotRequest{ID: id, Volume: source}); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		filesystem string
		source     provision.Source
	}{
		"a zvol of a dataset's snapshot": {"", provision.Source{Snapshot: "snap-dataset"}},
		"a zvol of a dataset":            {"", provision.Source{Volume: "pvc-dataset"}},
		"a dataset of a zvol's snapshot": {provision.Dataset, provision.Source{Snapshot: "snap-zvol"}},
		"a dataset of a zvol":            {provision.Dataset, provision.Source{Volume: "pvc-zvol"}},
	} {
		r := request("pvc-copy", 8)
		r.Tree, r.Source = tc.filesystem, tc.source
		if v, err := p.Create(t.Context(), r); !errors.Is(err, provision.ErrInvalid) {
			t.Errorf("%s: %+v, %v", name, v, err)
		}
	}
}

func TestAVolumeOfTheOtherKindIsAConflict(t *testing.T) {
	h := newHost()
	p, _ := start(t, config(h))
	made(t, p, request("pvc-zvol", 8))
	made(t, p, dataset("pvc-dataset", 8))
	for id, r := range map[string]provision.CreateRequest{"a dataset": dataset("pvc-zvol", 8), "a zvol": request("pvc-dataset", 8)} {
		if v, err := p.Create(t.Context(), r); !errors.Is(err, provision.ErrConflict) {
			t.Errorf("%s: %+v, %v", id, v, err)
		}
	}
	for id, filesystem := range map[string]string{"pvc-zvol": provision.Dataset, "pvc-dataset": provision.Ext4} {
		if v, err := p.Format(t.Context(), provision.FormatRequest{ID: id, Filesystem: filesystem}); !errors.Is(err, provision.ErrConflict) {
			t.Errorf("%s with %s: %+v, %v", id, filesystem, v, err)
		}
	}
}

func TestADatasetIsFoundAfterARestartWithoutAnyDevice(t *testing.T) {
	h := newHost()
	p, _ := start(t, config(h))
	want := made(t, p, dataset("pvc-1", 8))
	if got, err := fresh(t, h).Get(t.Context(), "pvc-1"); err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
}

func TestADatasetOfOthersIsNeverAVolume(t *testing.T) {
	for name, tc := range map[string]struct {
		at    string
		props map[string]string
	}{
		"no record":                          {parent + "/pvc-1", nil},
		"a record of another volume":         {parent + "/pvc-1", map[string]string{"berth.dev:volume": "pvc-2"}},
		"a record outside of every pool":     {"tank/theirs/pvc-1", map[string]string{"berth.dev:volume": "pvc-1"}},
		"a pool with the name of the volume": {parent + "/pvc-1", map[string]string{"berth.dev:volume": "pvc-1", "berth.dev:pool": parent + "/pvc-1"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost()
			h.PutFilesystem("tank/theirs", nil)
			h.PutFilesystem(tc.at, tc.props)
			p, _ := start(t, config(h))
			if v, err := p.Get(t.Context(), "pvc-1"); !errors.Is(err, provision.ErrNotFound) {
				t.Errorf("taken for a volume: %+v, %v", v, err)
			}
			before := datasets(h)
			_ = p.Delete(t.Context(), "pvc-1")
			if diff := cmp.Diff(before, datasets(h)); diff != "" {
				t.Errorf("touched (-before +after):\n%s", diff)
			}
		})
	}
}

func TestASnapshotOfADatasetRecordsItsSize(t *testing.T) {
	h := newHost()
	p, _ := start(t, config(h))
	made(t, p, dataset("pvc-1", 8))
	s, err := p.Snapshot(t.Context(), provision.SnapshotRequest{ID: "snap-1", Volume: "pvc-1"})
	if err != nil || s.Size != 8*unit {
		t.Fatalf("%+v, %v", s, err)
	}
	if _, err := p.Expand(t.Context(), provision.ExpandRequest{ID: "pvc-1", Size: 20 * unit}); err != nil {
		t.Fatal(err)
	}
	p.Wait()
	if s, err = p.GetSnapshot(t.Context(), "snap-1"); err != nil {
		t.Fatal(err)
	}
	if again, err := fresh(t, h).GetSnapshot(t.Context(), "snap-1"); err != nil || again != s {
		t.Errorf("after its volume grew: %+v, %v, want %+v", again, err, s)
	}
	r := dataset("pvc-2", 8)
	r.Source.Snapshot = "snap-1"
	if v := made(t, p, r); v.Size != 8*unit {
		t.Errorf("restored %+v", v)
	}
}
