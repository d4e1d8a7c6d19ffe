package holders

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"berth.dev/berth/internal/guard"
)

const (
	pid   = 77
	podA  = pods + "/pod-a/one"
	hung  = "/system.slice/hung.service"
	proc  = "proc/77/"
	task  = proc + "task/77/"
	other = proc + "task/78/"
)

func maps(f *fake, mapping, to string) {
	f.write(task+"maps", "7f00-7f02 r-xp 00000000 00:05 12 /bin/sh\n"+mapping+"\n")
	f.link(proc+"map_files/7f00-7f02", silent) // it is not asked about
	f.link(proc+"map_files/7f04-7f08", to)
}

// A process that waits for a server that is gone may keep its mappings locked for ever.
func TestAProcessThatHangsIsNoProofAndKeepsNoOtherFromBeingStopped(t *testing.T) {
	for name, tc := range map[string]struct {
		edit func(f *fake)
		err  string
	}{
		"it may have mapped the volume": {func(*fake) {}, "its memory does not answer"},
		"it has the volume mounted": {func(f *fake) {
			f.mounts("77", f.mount("8:1", "/", "/data", "", "ext4"))
		}, "the volume is still held: process 77 in " + hung + " has it mounted at /data"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			others := map[int]string{70: podA, 90: podB}
			for p, cgroup := range others {
				f.process(p, cgroup)
				f.link(fmt.Sprintf("proc/%d/task/%d/fd/9", p, p), onVolume)
			}
			f.process(pid, hung)
			f.process(80, hung)
			f.hangs = []string{"77", "80"}
			tc.edit(f)
			f.waits = func() {
				for p, cgroup := range others {
					f.kills(p, cgroup)
				}
			}
			if err := f.kernel.Stop(tree); !says(err, tc.err) {
				t.Errorf("it is stopped: %v", err)
			}
			slices.Sort(f.did)
			if got := slices.Compact(f.did); !slices.Equal(got, []string{"kill " + podA, "kill " + podB}) {
				t.Errorf("it did %q", got)
			}
			if err := f.kernel.Free(tree); !says(err, tc.err) {
				t.Errorf("it is free: %v", err)
			}
		})
	}
}

// The device must not be found writable by a container that begins anew.
func TestADeviceIsMadeReadOnlyIfAllThatIsMissingAreMappings(t *testing.T) {
	for name, tc := range map[string]struct {
		edit func(f *fake)
		did  []string
	}{
		"a process hangs": {func(*fake) {}, []string{"read-only disk true"}},
		"the mounts of another process are unknown": {func(f *fake) {
			f.process(78, podA)
			f.directory("proc/78/task/78/mountinfo")
		}, nil},
	} {
		f := newFake(t)
		f.process(pid, hung)
		f.hangs = []string{"77"}
		tc.edit(f)
		if err := f.kernel.Stop(disk); err == nil || !slices.Equal(f.did, tc.did) {
			t.Errorf("%s: it did %q: %v", name, f.did, err)
		}
	}
}

func TestOnlyTheFirstProcessThatHangsIsWaitedForLong(t *testing.T) {
	f := newFake(t)
	f.process(pid, podA)
	f.process(78, podA)
	f.process(79, podA)
	f.hangs = []string{"77", "78"}
	if _, err := f.kernel.scan(tree); !errors.Is(err, errHangs) {
		t.Errorf("scanned: %v", err)
	}
	slices.Sort(f.waited)
	if n := len(f.waited); f.waited[0] != brief || f.waited[n-1] != silence {
		t.Errorf("they were waited for %v", f.waited)
	}
}

func TestAProcessThatHangsIsAskedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release, begun := make(chan struct{}), time.Now()
		var questions atomic.Int32
		ask := func() (string, error) { questions.Add(1); <-release; return "has mapped it", nil }
		for range 3 {
			if _, err := (kernel{}).within(silence, "/proc/77", ask); !errors.Is(err, errHangs) {
				t.Errorf("it answers: %v", err)
			}
		}
		if waited := time.Since(begun); questions.Load() != 1 || waited != silence {
			t.Errorf("it was asked %d times, and waited for %v", questions.Load(), waited)
		}
		if _, err := (kernel{}).within(silence, "/proc/78", func() (string, error) { return "", nil }); err != nil {
			t.Errorf("it holds up another: %v", err)
		}
		close(release)
		synctest.Wait()
		if why, err := (kernel{}).within(silence, "/proc/77", ask); why != "has mapped it" || err != nil || questions.Load() != 2 {
			t.Errorf("once it answers: %q, %v, after %d questions", why, err, questions.Load())
		}
	})
}

func TestEveryWayToHoldAVolumeIsFound(t *testing.T) {
	for name, tc := range map[string]struct {
		h    guard.Holding
		edit func(f *fake)
		want string // empty if the process holds nothing
	}{
		"nothing":              {tree, func(*fake) {}, ""},
		"a directory":          {tree, func(f *fake) { f.link(task+"cwd", onVolume) }, "has its cwd there"},
		"a root":               {tree, func(f *fake) { f.link(task+"root", onVolume) }, "has its root there"},
		"a program":            {tree, func(f *fake) { f.link(task+"exe", onVolume) }, "has its exe there"},
		"an open file":         {tree, func(f *fake) { f.link(task+"fd/9", onVolume) }, "has it open"},
		"a thread's open file": {tree, func(f *fake) { f.thread(pid, 78); f.link(other+"fd/9", onVolume) }, "has it open"},
		"a table of files that a thread shares": {tree, func(f *fake) {
			f.thread(pid, 78)
			f.shares = true
			f.link(other+"fd/9", silent) // it is looked at once, as the process's
			f.link(task+"fd/9", onVolume)
		}, "has it open"},
		"a thread's directory, though it shares its files": {tree, func(f *fake) { f.thread(pid, 78); f.shares = true; f.link(other+"cwd", onVolume) }, "has its cwd there"},
		"the device":                  {disk, func(f *fake) { f.link(task+"fd/9", isDevice) }, "has it open"},
		"the device below a tree":     {guard.Holding{Device: "0:0"}, func(f *fake) { f.link(task+"fd/9", isDevice) }, ""},
		"another device":              {disk, func(f *fake) { f.link(task+"fd/9", isOther) }, ""},
		"a character device":          {disk, func(f *fake) { f.link(task+"fd/9", isChar) }, ""},
		"a file of a subvolume":       {subvol, func(f *fake) { f.link(task+"fd/9", onTree) }, "has it open"},
		"a file of another subvolume": {subvol, func(f *fake) { f.link(task+"fd/9", onVolume) }, ""},
		"a shared mapping":            {disk, func(f *fake) { maps(f, "7f04-7f08 rw-s 00000000 00:05 12 /dev/x", isDevice) }, "has mapped it"},
		"a shared mapping at a low address": {disk, func(f *fake) {
			maps(f, "00400000-00402000 rw-s 00000000 00:05 12 /dev/x", elsewhere)
			f.link(proc+"map_files/400000-402000", isDevice)
		}, "has mapped it"},
		"a shared mapping at the lowest address": {disk, func(f *fake) {
			maps(f, "00000000-00001000 rw-s 00000000 00:05 12 /dev/x", elsewhere)
			f.link(proc+"map_files/0-1000", isDevice)
		}, "has mapped it"},
		"a private mapping": {tree, func(f *fake) { maps(f, "7f04-7f08 r-xp 00000000 08:01 12 /x", onVolume) }, "has mapped it"},
		"a mapping of a process whose first thread has ended": {disk, func(f *fake) {
			f.thread(pid, 78)
			f.write(task+"maps", "")
			f.write(other+"maps", "7f04-7f08 rw-s 00000000 00:05 12 /dev/x\n")
			f.link("proc/78/map_files/7f04-7f08", isDevice)
		}, "has mapped it"},
		"a mount of a process whose first thread has ended": {tree, func(f *fake) {
			f.thread(pid, 78)
			f.remove(task + "ns")
			f.write(other+"mountinfo", f.mount("8:1", "/", "/data", "", "ext4"))
		}, "has it mounted at /data"},
		"a mount of a thread": {tree, func(f *fake) {
			f.thread(pid, 78)
			f.write(other+"mountinfo", f.mount("8:1", "/", "/data", "", "ext4"))
		}, "has it mounted at /data"},
		"a mapping of another file": {tree, func(f *fake) { maps(f, "7f04-7f08 rw-s 00000000 00:05 12 /x", elsewhere) }, ""},
		"a mapping of no file":      {tree, func(f *fake) { maps(f, "7f04-7f08 rw-s 00000000 00:05 0", silent) }, ""},
		"a mapping that has no end": {tree, func(f *fake) { maps(f, "7f04-7f08 rw-s", silent) }, ""},
		"a mapping with a long name": {tree, func(f *fake) {
			maps(f, "7f04-7f08 rw-s 00000000 00:05 12 /"+strings.Repeat(`\134`, 4096), onVolume)
		}, "has mapped it"},
		"a mount": {tree, func(f *fake) { f.mounts("77", f.mount("8:1", "/", "/data", "", "ext4")) }, "has it mounted at /data"},
		"a mount that another namespace gave": {tree, func(f *fake) {
			f.mounts("77", f.mount("8:1", "/", "/data", "master:1", "ext4"))
		}, "has it mounted at /data, passing"},
		"a mount of its own and one that another namespace gave": {tree, func(f *fake) {
			f.mounts("77", f.mount("8:1", "/", "/own", "", "ext4"), f.mount("8:1", "/", "/data", "master:1", "ext4"))
		}, "has it mounted at /data"},
		"a mount of another device": {tree, func(f *fake) { f.mounts("77", f.mount("8:2", "/", "/data", "", "ext4")) }, ""},
		"the mount of a subvolume": {subvol, func(f *fake) {
			f.mounts("77", f.mount("0:30", "/one", "/data", "", "btrfs"))
		}, "has it mounted at /data"},
		"the mount of a directory of a subvolume": {subvol, func(f *fake) {
			f.mounts("77", f.mount("0:30", "/one/two", "/data", "", "btrfs"))
		}, "has it mounted at /data"},
		"the mount of another subvolume": {subvol, func(f *fake) { f.mounts("77", f.mount("0:30", "/one-more", "/data", "", "btrfs")) }, ""},
		"a mount in the guard's namespace": {tree, func(f *fake) {
			f.link(task+"ns/mnt", "mnt:[guard]")
			f.mounts("77", f.mount("8:1", "/", "/data", "", "ext4"))
		}, ""},
		"a mount in the machine's namespace": {tree, func(f *fake) {
			f.link(task+"ns/mnt", "mnt:[init]")
			f.mounts("77", f.mount("8:1", "/", "/data", "", "ext4"))
		}, ""},
		"a thread that ends meanwhile":      {tree, func(f *fake) { f.thread(pid, 78); f.remove(task + "fd"); f.link(other+"fd/9", onVolume) }, "has it open"},
		"a file that is closed meanwhile":   {tree, func(f *fake) { f.looks = gone(f, task+"cwd"); f.link(task+"fd/9", onVolume) }, "has it open"},
		"a thread that ends during a look":  {tree, func(f *fake) { f.link(task+"cwd", ended); f.link(task+"fd/9", onVolume) }, "has it open"},
		"a process that ends before a look": {tree, func(f *fake) { f.link(task+"cwd", onVolume); f.remove(proc + "stat") }, ""},
		"a process that ends after a look":  {tree, func(f *fake) { f.link(task+"fd/9", onVolume); f.looks = func(string) { f.remove(proc + "stat") } }, ""},
		"a process that ends within a look": {tree, func(f *fake) { f.link(task+"fd/9", onVolume); f.remove(proc + "cgroup") }, ""},
		"a process that ends during a look": {tree, func(f *fake) { f.link(task+"fd/9", onVolume); f.looks = gone(f, "proc/77") }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.process(pid, podA)
			tc.edit(f)
			found, err := f.kernel.scan(tc.h)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, h := range found {
				if h.pid != pid || h.cgroup != podA || h.mount != strings.Contains(h.why, "mounted") {
					t.Errorf("found %+v", h)
				}
				text := strings.TrimPrefix(h.String(), "process 77 in "+podA+" ")
				if h.passing {
					text += ", passing"
				}
				got = append(got, text)
			}
			if strings.Join(got, "; ") != tc.want {
				t.Errorf("found %q, want %q", got, tc.want)
			}
		})
	}
}

// gone lets a file end when it is looked at, or what is below it.
func gone(f *fake, name string) func(link string) {
	return func(link string) {
		if strings.HasPrefix(link, filepath.Join(f.root, name)) {
			f.remove(name)
		}
	}
}

func TestAProcessThatCannotBeLookedAtIsNoProof(t *testing.T) {
	for name, tc := range map[string]struct {
		edit func(f *fake)
		want string
	}{
		"a file that does not answer":  {func(f *fake) { f.link(task+"fd/9", silent) }, "looking at process 77"},
		"a directory that does not":    {func(f *fake) { f.link(task+"cwd", silent) }, "looking at process 77"},
		"a mapped file that does not":  {func(f *fake) { maps(f, "7f04-7f08 rw-s 00000000 00:05 12 /x", silent) }, "looking at process 77"},
		"mappings that cannot be read": {func(f *fake) { f.directory(task + "maps") }, "looking at process 77"},
		"no times":                     {func(f *fake) { f.write(proc+"stat", "77 (sh) S 1 2 3") }, "has 4 fields after the name"},
		"a holder whose times are lost": {func(f *fake) {
			f.link(task+"fd/9", isDevice)
			f.looks = func(string) { f.write(proc+"stat", "77 (sh) S 1 2 3") }
		}, "has 4 fields after the name"},
		"no control group":               {func(f *fake) { f.write(proc+"cgroup", "1:name=systemd:/other\n") }, "in no control group"},
		"no files":                       {func(f *fake) { f.remove(task + "fd"); f.write(task+"fd", "") }, "not a directory"},
		"no threads":                     {func(f *fake) { f.remove(proc + "task"); f.write(proc+"task", "") }, "not a directory"},
		"no mount namespace":             {func(f *fake) { f.remove(task + "ns/mnt"); f.write(task+"ns/mnt", "") }, "invalid argument"},
		"a mount table that is no table": {func(f *fake) { f.mounts("77", "nonsense\n") }, "reading " /* the table */},
		"a mount table in a directory":   {func(f *fake) { f.directory(task + "mountinfo") }, "is a directory"},
		"a machine without processes":    {func(f *fake) { f.remove("proc"); f.write("proc", "") }, "not a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.process(pid, podA)
			tc.edit(f)
			if found, err := f.kernel.scan(disk); !says(err, tc.want) {
				t.Errorf("found %v, %v", found, err)
			}
			if err := f.kernel.Stop(disk); !says(err, tc.want) || len(f.did) > 0 {
				t.Errorf("it did %v: %v", f.did, err)
			}
			if err := f.kernel.Free(disk); !says(err, tc.want) {
				t.Errorf("it is called free: %v", err)
			}
		})
	}
}

func TestTheProcessThatGotTheNumberOfAnotherOneIsFoundAsItself(t *testing.T) {
	f := newFake(t)
	f.process(pid, podA)
	f.link(task+"fd/9", onVolume)
	f.looks = func(string) {
		f.looks = nil
		f.began(pid, 2000)
		f.write(proc+"cgroup", "0::/kubepods.slice/pod-b/one\n")
	}
	if found, err := f.kernel.scan(tree); err != nil || len(found) != 1 || found[0].cgroup != "/kubepods.slice/pod-b/one" {
		t.Errorf("found %v, %v", found, err)
	}
}

func TestTheGuardItselfHoldsNothing(t *testing.T) {
	f := newFake(t)
	f.process(os.Getpid(), pods+"/pod-guard/one")
	f.link(fmt.Sprintf("proc/%d/task/%d/cwd", os.Getpid(), os.Getpid()), onVolume)
	if found, err := f.kernel.scan(tree); err != nil || len(found) > 0 {
		t.Errorf("found %v, %v", found, err)
	}
}

func TestTheProcessesOfOneMountNamespaceAreJudgedByOneReadingOfItsTable(t *testing.T) {
	f := newFake(t)
	f.process(pid, podA)
	f.process(78, podA)
	f.link("proc/78/task/78/ns/mnt", "mnt:[77]")
	f.mounts("77", f.mount("8:1", "/", "/data", "", "ext4")) // as if it was unmounted between two readings
	if found, err := f.kernel.scan(tree); err != nil || len(found) == 1 {
		t.Errorf("found %v, %v", found, err)
	}
}
