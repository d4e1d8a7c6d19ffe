package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"berth.dev/berth/internal/provision/lvm/kernel"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
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
	if _, err := label(f.Name()); err != nil {
		t.Fatal(err)
	}
	g := &lvmtest.Group{Name: "vg0", Device: f.Name(), Extents: 15, Volumes: map[string]*lvmtest.Volume{}}
	for n := range uint64(5) {
		g.Seqno++
		g.Volumes["pvc-"+string(rune('a'+n))] = &lvmtest.Volume{Extents: 1, Tags: []string{"berth.dev/volume=x"}}
		if err := commit(g); err != nil {
			t.Fatal(err)
		}
		if got, err := (kernel.Devices{}).Sequence(f.Name()); err != nil || got != n+1 {
			t.Errorf("after change %d the device says %d, %v", n+1, got, err)
		}
	}
	again, err := groupOn(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(g, again, cmpopts.IgnoreUnexported(lvmtest.Group{}, lvmtest.Volume{})); diff != "" {
		t.Errorf("the group changed on its way through the device:\n%s", diff)
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
