package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"berth.dev/berth/internal/provision/lvm/kernel"
)

func newDevice(t *testing.T) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "disk"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := f.Truncate(64 << 20); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestBerthFindsTheNumberOfEveryChange(t *testing.T) {
	f := newDevice(t)
	if err := writeLabel(f, 64<<20); err != nil {
		t.Fatal(err)
	}
	g := &group{Name: "vg0", UUID: newUUID(), Extents: 15, device: f.Name()}
	for n := range uint64(5) {
		g.Volumes = append(g.Volumes, &logical{Name: "pvc-" + string(rune('a'+n)), Extents: 1, Tags: []string{"berth.dev/volume=x"}})
		if err := g.commit(); err != nil {
			t.Fatal(err)
		}
		if got, err := (kernel.Devices{}).Sequence(f.Name()); err != nil || got != n+1 {
			t.Errorf("after change %d the device says %d, %v", n+1, got, err)
		}
	}
	again, err := readGroup(f)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(g, again, cmp.AllowUnexported(group{}), cmpopts.IgnoreFields(group{}, "device")); diff != "" {
		t.Errorf("the group changed on its way through the device:\n%s", diff)
	}
	if again.free() != 10 {
		t.Errorf("%d extents are free, want 10", again.free())
	}
}

func TestADeviceOfOthersHoldsNoGroup(t *testing.T) {
	if _, err := readGroup(newDevice(t)); !errors.Is(err, errNoMetadata) {
		t.Errorf("an empty device: %v", err)
	}
	labelled := newDevice(t)
	if err := writeLabel(labelled, 64<<20); err != nil {
		t.Fatal(err)
	}
	if _, err := readGroup(labelled); !errors.Is(err, errNoMetadata) {
		t.Errorf("a device with a label alone: %v", err)
	}
}
