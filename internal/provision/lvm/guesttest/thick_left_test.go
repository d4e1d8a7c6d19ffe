//go:build platform

package guesttest

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/blockdev/blockdevtest"
	"berth.dev/berth/internal/provision/lvm/kernel"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
)

// offsetOf returns the offset at which a device shows a text, or -1.
func offsetOf(b *bench, v provision.Volume, text string) int64 {
	b.Helper()
	f, err := os.Open(v.Content.Source)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	block := make([]byte, mib)
	for at := int64(0); ; at += mib {
		n, err := io.ReadFull(f, block)
		if i := bytes.Index(block[:n], []byte(text)); i >= 0 {
			return at + int64(i)
		}
		if err != nil {
			return -1
		}
	}
}

// The test makes by hand, as LVM makes them, the logical volumes that a process leaves if it dies
// between two steps.
func TestACopyOfADeadProcessIsFinishedOrCleanedUpOnRealLVM(t *testing.T) {
	cow := func(id string) []string {
		return []string{"lvcreate", "--yes", "--type", "snapshot", "--size", "68m", "--chunksize", "64k", "--name", "cow-" + id, "--addtag", "berth.dev/cow=" + id, "vg-berth/pvc-1"}
	}
	target := func(tag string) []string {
		return []string{"lvcreate", "--yes", "--wipesignatures", "y", "--zero", "y", "--size", "64m", "--name", "snap-1", "--addtag", tag, "--addtag", "berth.dev/of=pvc-1",
			"--addtag", "berth.dev/taken=1", "vg-berth"}
	}
	for name, tc := range map[string]struct {
		left   [][]string
		reboot bool
		// snapshots is how many there are in the end, and problem is the problem of one.
		snapshots int
		problem   string
	}{
		"the process died before the snapshot was carved":                                {[][]string{cow("snap-1")}, false, 0, ""},
		"the process died before the copy-on-write volume became a snapshot":             {[][]string{{"lvcreate", "--yes", "--size", "68m", "--name", "cow-snap-1", "--addtag", "berth.dev/cow=snap-1", "vg-berth"}}, false, 0, ""},
		"the process died before the copy was filled":                                    {[][]string{cow("snap-1"), target("berth.dev/copying=snap-1")}, false, 1, ""},
		"the machine died before the copy was filled":                                    {[][]string{cow("snap-1"), target("berth.dev/copying=snap-1")}, true, 1, ""},
		"the process died before the copy-on-write snapshot was removed":                 {[][]string{cow("snap-1"), target("berth.dev/snapshot=snap-1")}, false, 1, ""},
		"the machine died before the copy-on-write snapshot was removed":                 {[][]string{cow("snap-1"), target("berth.dev/snapshot=snap-1")}, true, 1, ""},
		"an administrator removed the copy-on-write snapshot before the copy was filled": {[][]string{target("berth.dev/copying=snap-1")}, false, 1, "is gone"},
	} {
		t.Run(name, func(t *testing.T) {
			b := begin(t)
			v := b.make("pvc-1", 64, provision.Source{})
			blockdevtest.WriteAt(t, v.Content.Source, "held", 1<<20)
			b.stop()
			for _, command := range tc.left {
				lvmtest.LVM(t, command...)
			}
			if tc.reboot {
				lvmtest.LVM(t, "vgchange", "--activate", "n", "vg-berth")
			}
			b.p, b.stop = lvmtest.Start(t, b.config)
			lvmtest.Eventually(t, func() bool {
				pools, err := b.p.Report(t.Context())
				if err != nil || len(pools) != 1 || len(pools[0].Snapshots) != tc.snapshots || len(pools[0].Wiping) > 0 || pools[0].Foreign > 0 {
					return false
				}
				for _, s := range pools[0].Snapshots {
					if s.Copying == (tc.problem == "") || !strings.Contains(s.Problem, tc.problem) {
						return false
					}
				}
				return true
			}, "it is not gone on with")
			if tc.snapshots == 1 && tc.problem == "" {
				r := b.make("pvc-2", 64, provision.Source{Snapshot: "snap-1"})
				b.settle()
				if got := blockdevtest.ReadAt(t, r.Content.Source, 4, 1<<20); tc.left[1] != nil && strings.Contains(strings.Join(tc.left[1], " "), "copying") && got != "held" {
					t.Errorf("it holds %q", got)
				}
			}
		})
	}
}

func TestProcessesOfThickCopiesOnRealLVM(t *testing.T) {
	pool := lvmtest.RealGroup(t, "vg-berth", lvmtest.Disks(t, 1)[0])
	lvmtest.EmptyAfter(t, pool.Name)
	c, counter, _ := lvmtest.RealConfig(t)
	b := &bench{T: t, config: c, pool: pool}
	b.p, b.stop = lvmtest.Start(t, c)
	<-b.p.Changed() // it watches
	b.make("pvc-1", 64, provision.Source{})
	b.settle()
	counter.Take()
	copied := map[string]int{"lvcreate": 2, "lvchange": 1, "lvconvert": 1, "lvremove": 1}
	for _, step := range []struct {
		name string
		do   func()
		want map[string]int
	}{
		{"snapshot", func() { b.snapshot("snap-1", "pvc-1") }, copied},
		{"restore larger", func() { b.make("pvc-2", 96, provision.Source{Snapshot: "snap-1"}) }, map[string]int{"lvcreate": 1, "lvchange": 1}},
		{"clone", func() { b.make("pvc-3", 64, provision.Source{Volume: "pvc-1"}) }, copied},
		{"delete snapshot", func() {
			if err := b.p.DeleteSnapshot(t.Context(), "snap-1"); err != nil {
				t.Fatal(err)
			}
		}, map[string]int{"lvchange": 1, "lvremove": 1}},
	} {
		step.do()
		b.settle()
		// LVM numbered the changes as foreseen, so nothing had to be read again.
		if got := counter.Take(); !cmp.Equal(got, step.want) {
			t.Errorf("%s and reports started %v, want %v", step.name, got, step.want)
		}
	}
}

func TestTheKernelIsAskedForItsTargets(t *testing.T) {
	for target, want := range map[string]bool{"snapshot": true, "thin-pool": true, "linear": true, "no-such-target": false} {
		if got, err := (kernel.Devices{}).Provides(target); got != want || err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %t, %v", target, got, err)
		}
	}
}

func TestTheKernelTellsTheNamesOfAllMappedDevicesAtOnce(t *testing.T) {
	b := begin(t)
	made(t, b.p, request(b.pool, "pvc-1", 8))
	made(t, b.p, request(b.pool, "pvc-2", 8))
	names, err := (kernel.Devices{}).Names()
	if err != nil {
		t.Fatal(err)
	}
	mapped, err := (kernel.Devices{}).Mapped()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := slices.Sorted(maps.Values(names)), slices.Sorted(maps.Keys(mapped)); !cmp.Equal(got, want) || len(got) < 2 {
		t.Errorf("the kernel tells of %q, sysfs shows %q", got, want)
	}
	for device, name := range names {
		shown, err := os.ReadFile("/sys/class/block/" + device + "/dm/name")
		if err != nil || strings.TrimSpace(string(shown)) != name {
			t.Errorf("sysfs shows the name %q of %s, and the kernel tells %q: %v", shown, device, name, err)
		}
	}
}
