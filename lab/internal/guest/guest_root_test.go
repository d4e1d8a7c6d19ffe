//go:build root

package guest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"berth.dev/berth/lab/internal/artefact"
	"berth.dev/berth/lab/internal/guest/wire"
	"berth.dev/berth/lab/internal/network"
	"berth.dev/berth/lab/internal/progress"
)

// These tests boot real guests from the image in the lab's cache, and make the
// image if it is missing.

func image(t testing.TB) Image {
	t.Helper()
	dir := os.Getenv("BERTH_LAB_CACHE")
	if dir == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			t.Fatal(err)
		}
		dir = filepath.Join(base, "berth-lab")
	}
	i, err := GetImage(t.Context(), &artefact.Store{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// booted is a running guest in a network of its own. It answers.
type booted struct {
	*Machine
	t   *testing.T
	net *network.Network
}

func bootNode(t *testing.T, disks int) booted {
	t.Helper()
	return bootIn(t, t.TempDir(), disks)
}

// bootIn boots a guest whose files are below dir.
func bootIn(t *testing.T, dir string, disks int) booted {
	t.Helper()
	net, err := network.Create(t.Context(), "guest-test")
	if err != nil {
		t.Fatal(err)
	}
	clean := context.WithoutCancel(t.Context())
	t.Cleanup(func() {
		if err := net.Destroy(clean); err != nil {
			t.Error(err)
		}
	})
	tap, err := net.Tap(t.Context(), "node1")
	if err != nil {
		t.Fatal(err)
	}
	m, err := Create(t.Context(), filepath.Join(dir, "node1"), Spec{
		Name: "node1", Image: image(t), CPUs: 2, Memory: 1 << 30, Disks: NewDisks(disks, 1<<30), NetNS: net.Path(), Tap: tap,
		Seed: Seed{Plan: wire.Plan{Network: &wire.Interface{
			MAC: "02:77:00:00:01:01", Address: "10.77.0.10/24", Gateway: network.Gateway.String()}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Remove(clean); err != nil {
			t.Error(err)
		}
	})
	b := booted{Machine: m, t: t, net: net}
	b.on()
	return b
}

func (b booted) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b booted) on() {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), bootTimeout)
	defer cancel()
	b.must(b.PowerOn(ctx))
	b.must(b.WaitReady(ctx))
}

func (b booted) run(argv ...string) string {
	b.t.Helper()
	out, err := b.Output(b.t.Context(), argv...)
	b.must(err)
	return strings.TrimSpace(string(out))
}

// succeeds reports whether a program in the guest exits with 0.
func (b booted) succeeds(argv ...string) bool {
	b.t.Helper()
	code, err := b.Exec(b.t.Context(), ExecRequest{Argv: argv})
	b.must(err)
	return code == 0
}

// eventually waits for something the guest or its kernel does by itself.
func (b booted) eventually(what string, is func() bool) {
	b.t.Helper()
	limit := time.After(time.Minute)
	for tick := time.NewTicker(100 * time.Millisecond); !is(); {
		select {
		case <-tick.C:
		case <-limit:
			b.t.Fatalf("not after a minute: %s", what)
		}
	}
}

func TestVolumesAndFilesOutliveAPowerCut(t *testing.T) {
	b := bootNode(t, 1)
	disk := b.Disks()[0].Device("node1")
	for _, argv := range [][]string{
		{"pvcreate", disk},
		{"vgcreate", "vg", disk},
		{"lvcreate", "--yes", "--size", "128M", "--name", "thick", "vg"},
		{"lvcreate", "--yes", "--size", "128M", "--thinpool", "vg/pool"},
		{"lvcreate", "--yes", "--virtualsize", "1G", "--thinpool", "vg/pool", "--name", "thin"},
		{"mkfs.ext4", "-q", "/dev/vg/thick"}, {"mkfs.xfs", "-q", "/dev/vg/thin"},
		{"mount", "/dev/vg/thick", "/mnt"},
		{"cp", "/etc/hosts", "/mnt/hosts"},
		{"touch", "/root/kept"},
		{"sync"},
	} {
		b.run(argv...)
	}
	b.must(b.PowerOff(t.Context()))
	if b.Power() != Off {
		t.Fatalf("after power off it is %s", b.Power())
	}
	b.on()
	b.run("mount", "/dev/vg/thick", "/mnt") // activated by udev's rule
	b.run("cmp", "/etc/hosts", "/mnt/hosts")
	b.run("test", "-e", "/root/kept")
	b.run("test", "-b", "/dev/vg/thin")
}

func TestTheKernelOfABareGuestLoadsModulesByItself(t *testing.T) {
	b := bootNode(t, 0)
	loaded := func(module string) bool { return b.succeeds("test", "-d", "/sys/module/"+module) }
	for _, module := range []string{"dm_mod", "dm_zero", "dm_thin_pool", "dm_snapshot", "loop"} {
		if loaded(module) {
			t.Errorf("%s is there from the start", module)
		}
	}
	b.run("head", "--bytes=0", "/dev/mapper/control")
	b.eventually("the device mapper is there", func() bool { return loaded("dm_mod") })
	b.run("dmsetup", "create", "nothing", "--table", "0 8 zero")
	if !loaded("dm_zero") {
		t.Error("the device mapper has a target without its module")
	}
}

// A daemon that is not handed a socket makes one of its own, which all users may see.
func TestUdevsDaemonListensOnTheSocketThatItIsHanded(t *testing.T) {
	b := bootNode(t, 0)
	if mode := b.run("stat", "--format=%a", "/run/udev/control"); mode != "600" {
		t.Errorf("the control socket has mode %s: it is the daemon's own, want 600", mode)
	}
}

func TestDiskComesAndGoesWhileTheGuestRuns(t *testing.T) {
	b := bootNode(t, 0)
	disk, err := b.AddDisk(t.Context(), 1<<30)
	b.must(err)
	device := disk.Device("node1")
	b.eventually("the disk is there", func() bool { return b.succeeds("test", "-b", device) })
	if size := b.run("blockdev", "--getsize64", device); size != "1073741824" {
		t.Errorf("the disk has %s bytes", size)
	}
	b.run("pvcreate", device)
	b.must(b.RemoveDisk(t.Context(), disk.Name))
	b.eventually("the disk is gone", func() bool { return !b.succeeds("test", "-b", device) })
	again, err := b.AddDisk(t.Context(), 1<<30)
	b.must(err)
	b.eventually("the next disk is there", func() bool { return b.succeeds("test", "-b", again.Device("node1")) })
	if b.succeeds("blkid", "--probe", again.Device("node1")) {
		t.Error("the next disk is not empty")
	}
}

func TestCutGuestIsSilentToOthersAndStillAnswersExec(t *testing.T) {
	b := bootNode(t, 0)
	ping := func() bool { return b.succeeds("ping", "-c", "1", "-W", "2", network.Gateway.String()) }
	if !ping() {
		t.Fatal("the guest does not reach the gateway")
	}
	b.must(b.net.Cut(t.Context(), "node1"))
	if ping() {
		t.Error("a cut guest reaches the gateway")
	}
	b.must(b.net.Heal(t.Context(), "node1"))
	b.eventually("the gateway is reached again", ping)
}

func TestClockRunsAsFastAsTheHosts(t *testing.T) {
	b := bootNode(t, 0)
	offset := func() time.Duration {
		var seconds float64
		if _, err := fmt.Sscan(b.run("date", "+%s.%N"), &seconds); err != nil {
			t.Fatal(err)
		}
		return time.Since(time.UnixMicro(int64(seconds * 1e6)))
	}
	// The real-time clock a guest reads at boot counts whole seconds.
	if off := offset().Abs(); off > 10*time.Second {
		t.Errorf("the guest's clock is off by %v", off)
	}
}

func TestPausedGuestDoesNothingUntilResumed(t *testing.T) {
	b := bootNode(t, 0)
	boot := b.run("cat", "/proc/sys/kernel/random/boot_id")
	b.must(b.Pause(t.Context()))
	b.eventually("it is paused", func() bool { return b.Power() == Paused })
	if _, err := b.Exec(t.Context(), ExecRequest{Argv: []string{"true"}}); err == nil || !strings.Contains(err.Error(), "paused") {
		t.Errorf("exec on a paused guest: %v", err)
	}
	if _, err := b.AddDisk(t.Context(), 1<<30); err == nil || !strings.Contains(err.Error(), "paused") {
		t.Errorf("adding a disk to a paused guest: %v", err)
	}
	b.must(b.Resume(t.Context()))
	if again := b.run("cat", "/proc/sys/kernel/random/boot_id"); again != boot {
		t.Error("the guest booted instead of going on")
	}
	b.must(b.Pause(t.Context()))
	b.must(b.PowerOff(t.Context())) // a paused machine has a plug too
}

func TestLostProcessIsEndedBeforeAnotherUsesTheDisks(t *testing.T) {
	b := bootNode(t, 0)
	first := b.Process
	b.Process.PID, b.Process.StartTime = 0, 0 // as if the lab had died before recording it
	b.on()
	if first.Alive() {
		t.Error("two processes write to the same disks")
	}
}

func TestThrowAwayGuestRunsWithItsFilesAndLeavesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "guests")
	var stdout bytes.Buffer
	s := Spec{Name: "guest", Image: image(t), CPUs: 2, Memory: 1 << 30, Disks: NewDisks(1, 1<<30),
		Seed: Seed{Files: []File{{Path: "/root/hello", Mode: 0o755, Data: []byte("#!/bin/sh\necho hello; test -b /dev/sda && exit 7\n")}}}}
	code, err := Run(t.Context(), dir, s, ExecRequest{Argv: []string{"./hello"}, Stdout: &stdout}, progress.Discard)
	if err != nil || code != 7 || stdout.String() != "hello\n" {
		t.Errorf("got code %d, output %q, %v", code, stdout.String(), err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func BenchmarkBootToExec(b *testing.B) {
	i := image(b)
	for b.Loop() {
		s := Spec{Name: "guest", Image: i, CPUs: 2, Memory: 1 << 30}
		if _, err := Run(b.Context(), b.TempDir(), s, ExecRequest{Argv: []string{"true"}}, progress.Discard); err != nil {
			b.Fatal(err)
		}
	}
}
