//go:build platform

package lvm_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/blockdev/blockdevtest"
	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
	"berth.dev/berth/internal/run"
)

// tool runs a program of the machine and returns its output.
func tool(t *testing.T, program string, args ...string) string {
	t.Helper()
	out, err := run.Exec{}.Change(run.Command{Operation: program, Program: program, Args: args})
	if err != nil {
		t.Fatalf("%s %s: %v", program, strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out))
}

// attach makes a loop device over a file or, as the kubelet does, over a raw block volume.
func attach(t *testing.T, path string) (loop string, detach func()) {
	t.Helper()
	loop = tool(t, "losetup", "--find", "--show", path)
	attached := true
	detach = func() {
		if !attached {
			return
		}
		attached = false
		tool(t, "losetup", "--detach", loop)
		eventually(t, func() bool { // a process that has it open just now keeps it for as long
			_, err := os.Stat(filepath.Join("/sys/block", filepath.Base(loop), "loop"))
			return errors.Is(err, os.ErrNotExist)
		}, "the loop device stays")
	}
	t.Cleanup(detach)
	return loop, detach
}

// lvmOn runs LVM on one device, like on a machine that has no other device.
func lvmOn(t *testing.T, device string, args ...string) {
	t.Helper()
	filter := `activation{udev_sync=0 udev_rules=0 monitoring=0} devices{obtain_device_list_from_udev=0 global_filter=["a|^` + device + `$|","r|.*|"]}`
	tool(t, "lvm", append([]string{args[0], "--config", filter}, args[1:]...)...)
}

// imitation makes a file with a volume group of this name. Some of its logical volumes look like
// formatted volumes of Berth's, and one looks like a volume to be wiped. The file must be made
// before the machine has a group of that name, because LVM makes no second one.
func imitation(t *testing.T, group string, ids ...string) (path string) {
	t.Helper()
	path = image(t, 32<<20)
	loop, detach := attach(t, path)
	lvmOn(t, loop, "vgcreate", "--yes", "--setautoactivation", "n", group, loop)
	lv := func(id string, tags ...string) {
		args := []string{"lvcreate", "--yes", "--activate", "n", "--zero", "n", "--wipesignatures", "n", "--size", "4m", "--name", id, group}
		for _, tag := range tags {
			args = append(args, "--addtag", tag)
		}
		lvmOn(t, loop, args...)
	}
	for _, id := range ids {
		lv(id, "berth.dev/volume="+id, "berth.dev/fs=ext4")
	}
	lv("pvc-wiped", "berth.dev/wiping=pvc-wiped")
	detach()
	return path
}

// image makes a file that can hold a volume group.
func image(t *testing.T, size int64) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "disk.img")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAVolumeGroupWrittenByAPodIsNotReadAsTheNodesOnRealLVM(t *testing.T) {
	for name, group := range map[string]string{"a group with the name of the pool": "vg-berth", "a group of another name": "evil"} {
		t.Run(name, func(t *testing.T) {
			written := imitation(t, group, "pvc-victim", "pvc-theirs")
			pool := lvmtest.RealGroup(t, "vg-berth", lvmtest.Disks(t, 1)[0])
			lvmtest.EmptyAfter(t, pool.Name)
			c, _, _ := lvmtest.RealConfig(t)
			p, stop := start(t, c)
			carve := func(id string, size int64) provision.Volume {
				t.Helper()
				v, err := p.Create(t.Context(), provision.CreateRequest{ID: id, Pool: pool, Size: size, Wipe: provision.WipeNone})
				if err != nil {
					t.Fatal(err)
				}
				return v
			}
			victim := carve("pvc-victim", 8<<20)
			raw := carve("pvc-raw", 64<<20)
			tool(t, "dd", "if="+written, "of="+raw.Content.Source, "bs=1M", "oflag=direct", "status=none") // by the pod
			loop, detach := attach(t, raw.Content.Source)                                                  // by the kubelet
			stop()
			p, _ = start(t, c)
			for range 20 {
				if got, err := p.Get(t.Context(), "pvc-victim"); err != nil || got != victim {
					t.Fatalf("got %+v, %v; want %+v", got, err, victim)
				}
			}
			if got, err := p.Get(t.Context(), "pvc-theirs"); !errors.Is(err, provision.ErrNotFound) {
				t.Errorf("got %+v, %v of what the pod wrote", got, err)
			}
			if fine, troubled := report(t, p); !slices.Equal(fine, []string{pool.Name}) || len(troubled) > 0 {
				t.Errorf("reported %v and %v, want %s alone", fine, troubled, pool.Name)
			}
			carve("pvc-new", 4<<20)
			if _, err := p.Expand(t.Context(), provision.ExpandRequest{ID: "pvc-new", Size: 8 << 20}); err != nil {
				t.Error(err)
			}
			if err := p.Delete(t.Context(), "pvc-victim"); err != nil {
				t.Error(err)
			}
			lvmOn(t, loop, "lvs", group+"/pvc-victim", group+"/pvc-theirs", group+"/pvc-wiped") // all is as the pod wrote it
			if w := p.Warnings(); len(w) != 1 || w[0].Reason != v1alpha1.ReasonLVMReadsPodDevices {
				t.Errorf("warned of %v, want that the machine's LVM reads loop devices", w)
			}
			detach()
		})
	}
}

func TestAGroupOnALoopDeviceOverAFileIsAPoolOnRealLVM(t *testing.T) {
	loop, _ := attach(t, image(t, 256<<20))
	pool := lvmtest.RealGroup(t, "vg-file", loop)
	c, _, _ := lvmtest.RealConfig(t)
	p, _ := start(t, c)
	if fine, _ := report(t, p); !slices.Equal(fine, []string{pool.Name}) {
		t.Errorf("reported %v", fine)
	}
}

// copied adds a copy of a disk to the machine. The group on the copy has the name vg-clone.
func copied(t *testing.T, disk string) (remove func()) {
	t.Helper()
	twin := image(t, 256<<20)
	tool(t, "cp", disk, twin)
	loop, detach := attach(t, twin)
	lvmtest.LVM(t, "vgimportclone", "--basevgname", "vg-clone", loop)
	return func() {
		lvmtest.LVM(t, "vgchange", "--activate", "n", "vg-clone")
		lvmtest.LVM(t, "vgremove", "--yes", "--force", "vg-clone")
		detach()
	}
}

// namesake is the volume that the suites look for in a second group of the pool's name.
const namesake = "pvc-conformance-2"

// onLoop is a harness over a group whose disk can be copied and lost.
func onLoop(t *testing.T) conformance.Harness {
	theirs := imitation(t, "vg-berth", namesake)
	disk := image(t, 256<<20)
	loop, _ := attach(t, disk)
	pool := lvmtest.RealGroup(t, "vg-berth", loop)
	h := lvmtest.RealConformance(t, pool)
	h.Twin = func(provision.Volume) func() { return copied(t, disk) }
	h.Namesake = func(id string) func() {
		if id != namesake {
			t.Fatalf("%s is looked for, and the other group has %s", id, namesake)
		}
		_, detach := attach(t, theirs)
		return detach
	}
	h.Away = func() func() { // without its label LVM does not know the disk
		label := blockdevtest.ReadAt(t, loop, 4096, 0)
		blockdevtest.WriteAt(t, loop, strings.Repeat("\x00", len(label)), 0)
		return func() { blockdevtest.WriteAt(t, loop, label, 0) }
	}
	return h
}

func TestRealLVMPassesTheIdentitySuite(t *testing.T) {
	conformance.RunTwins(t, onLoop)
	conformance.RunNamesakes(t, onLoop)
	conformance.RunAway(t, onLoop)
}

func TestACopyOfADiskTakesNoVolumeAwayOnRealLVM(t *testing.T) {
	original := image(t, 256<<20)
	loop, _ := attach(t, original)
	pool := lvmtest.RealGroup(t, "vg-berth", loop)
	lvmtest.EmptyAfter(t, pool.Name)
	c, _, _ := lvmtest.RealConfig(t)
	p, _ := start(t, c)
	mine, err := p.Create(t.Context(), provision.CreateRequest{ID: "pvc-1", Pool: pool, Size: 8 << 20, Wipe: provision.WipeNone})
	if err != nil {
		t.Fatal(err)
	}
	remove := copied(t, original)
	eventually(t, func() bool { fine, _ := report(t, p); return slices.Equal(fine, []string{pool.Name, "vg-clone"}) }, "the copy is not reported")
	if got, err := p.Get(t.Context(), "pvc-1"); !errors.Is(err, provision.ErrConflict) {
		t.Errorf("got %+v, %v", got, err)
	}
	untouched(t, p, "pvc-1", provision.ErrConflict)
	lvmtest.LVM(t, "lvs", pool.Name+"/pvc-1", "vg-clone/pvc-1")
	remove()
	eventually(t, func() bool {
		report(t, p)
		got, err := p.Get(t.Context(), "pvc-1")
		return err == nil && got == mine
	}, "the volume is not usable again")
}

func TestADiskOfAnotherNodeTakesNoGroupAwayOnRealLVM(t *testing.T) {
	theirs := imitation(t, "vg-berth", "pvc-1", "pvc-9")
	loop, _ := attach(t, image(t, 256<<20))
	pool := lvmtest.RealGroup(t, "vg-berth", loop)
	lvmtest.EmptyAfter(t, pool.Name)
	c, _, _ := lvmtest.RealConfig(t)
	p, stop := start(t, c)
	mine, err := p.Create(t.Context(), provision.CreateRequest{ID: "pvc-1", Pool: pool, Size: 8 << 20, Wipe: provision.WipeNone})
	if err != nil {
		t.Fatal(err)
	}
	another, detach := attach(t, theirs)
	eventually(t, func() bool { _, troubled := report(t, p); return troubled[pool.Name] != "" }, "no trouble is reported")
	if got, err := p.Get(t.Context(), "pvc-1"); err != nil || got.Problem == "" || got.Size != mine.Size {
		t.Errorf("got %+v, %v; want what is known, with a problem", got, err)
	}
	untouched(t, p, "pvc-1", provision.ErrUnavailable)
	stop()
	p, _ = start(t, c)
	for _, id := range []string{"pvc-1", "pvc-9"} {
		if got, err := p.Get(t.Context(), id); !errors.Is(err, provision.ErrUnavailable) {
			t.Errorf("after a restart: %+v, %v", got, err)
		}
	}
	lvmOn(t, another, "lvs", "vg-berth/pvc-1", "vg-berth/pvc-9", "vg-berth/pvc-wiped")
	detach()
	eventually(t, func() bool {
		report(t, p)
		got, err := p.Get(t.Context(), "pvc-1")
		return err == nil && got == mine
	}, "the volume is not usable again")
}
