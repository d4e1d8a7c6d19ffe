package holders

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/guard"
)

const podB = pods + "/pod-b/one"

var errBusy = errors.New("device or resource busy")

// volume mounts a volume in the guard's namespace, at each path once.
func (f *fake) volume(h guard.Holding, paths ...string) {
	var lines []string
	for _, path := range paths {
		device := h.Device
		if other, is := strings.CutPrefix(path, "other:"); is {
			device, path = "8:2", other
		}
		lines = append(lines, f.mount(device, "/", path, "shared:1", "ext4"))
	}
	f.mounts("self", lines...)
}

func TestWhatMayBeStoppedIsAndTheRestIsNoProof(t *testing.T) {
	writer := func(pid int, cgroup string) func(f *fake) {
		return func(f *fake) {
			f.process(pid, cgroup)
			f.link(task+"fd/9", onVolume)
			f.link(task+"fd/8", isDevice)
			f.waits = func() { f.kills(pid, cgroup) }
		}
	}
	for name, tc := range map[string]struct {
		h    guard.Holding
		edit []func(f *fake)
		did  []string
		err  string
	}{
		"nothing holds a tree":                {h: tree},
		"nothing holds a device":              {h: disk, did: []string{"read-only disk true"}},
		"a pod writes to a tree":              {h: tree, edit: []func(*fake){writer(pid, podA)}, did: []string{"kill " + podA}},
		"a pod writes to a device":            {h: disk, edit: []func(*fake){writer(pid, podA)}, did: []string{"read-only disk true", "kill " + podA}},
		"a device cannot be made read-only":   {h: disk, edit: []func(*fake){writer(pid, podA), fails("read-only disk true")}, did: []string{"read-only disk true"}, err: "busy"},
		"a device has the guard's mount":      {h: disk, edit: []func(*fake){diskMounted}, did: []string{"unmount /data", "cover /data"}},
		"the guard's mount is busy":           {h: disk, edit: []func(*fake){diskMounted, fails("unmount /data")}, did: []string{"unmount /data"}, err: "unmounting /data: device or resource busy"},
		"a path cannot be covered":            {h: tree, edit: []func(*fake){mounted("/data"), fails("cover /data")}, did: []string{"unmount /data", "cover /data"}},
		"a path has two mounts of the volume": {h: tree, edit: []func(*fake){mounted("/data", "/data")}, did: []string{"unmount /data"}, err: "it is mounted at /data"},
		"another volume is mounted on top":    {h: tree, edit: []func(*fake){mounted("/data", "other:/data")}, err: "it is mounted at /data"},
		"the volume is mounted on another":    {h: tree, edit: []func(*fake){mounted("other:/data", "/data")}, did: []string{"unmount /data", "cover /data"}},
		"the volume is mounted at two paths":  {h: tree, edit: []func(*fake){mounted("/data", "/more")}, did: []string{"unmount /more", "cover /more", "unmount /data", "cover /data"}},
		"another volume is mounted":           {h: tree, edit: []func(*fake){mounted("other:/data")}},
		"the machine has it mounted": {h: tree, edit: []func(*fake){func(f *fake) {
			f.mounts("1", f.mount("8:1", "/", "/data", "", "ext4"))
		}}, err: "it is mounted at /data"},
		"the machine has a device mounted": {h: disk, edit: []func(*fake){func(f *fake) {
			f.mounts("1", f.mount("0:0", "/", "/data", "", "ext4"))
		}}, err: "it is mounted at /data"},
		"the machine's mounts cannot be read": {h: tree, edit: []func(*fake){func(f *fake) { f.directory("proc/1/mountinfo") }}, err: "is a directory"},
		"the guard's mounts cannot be read":   {h: tree, edit: []func(*fake){writer(pid, podA), func(f *fake) { f.directory("proc/self/mountinfo") }}, err: "is a directory"},
		"a pod has a device mounted": {h: disk, edit: []func(*fake){func(f *fake) {
			f.process(pid, podA)
			f.mounts("77", f.mount("0:0", "/", "/data", "", "ext4"))
			f.waits = func() { f.kills(pid, podA) }
		}}, did: []string{"kill " + podA}},
		"a pod only sees the guard's mount": {h: tree, edit: []func(*fake){mounted("/data"), sees},
			did: []string{"unmount /data", "cover /data"}, err: "the volume is still held: process 77 in " + podA + " has it mounted at /data, one of 1; if a pod has it, end the pod"},
		"a pod only sees the machine's mount": {h: tree, edit: []func(*fake){sees, func(f *fake) {
			f.mounts("1", f.mount("8:1", "/", "/data", "shared:1", "ext4"))
		}}, err: "the volume is still held: process 77"},
		"a pod has a mount that did not go with the machine's": {h: tree, edit: []func(*fake){sees}, did: []string{"kill " + podA}},
		"the agent has it open":                                {h: tree, edit: []func(*fake){writer(pid, pods+"/pod-agent/two")}, err: "the volume is still held: process 77"},
		"the control group cannot be killed": {h: tree, edit: []func(*fake){writer(pid, podA), func(f *fake) {
			f.directory("cgroups" + podA + "/cgroup.kill")
		}}, err: "killing control group " + podA},
		"the control group has no events": {h: tree, edit: []func(*fake){writer(pid, podA), func(f *fake) {
			f.remove("cgroups" + podA + "/cgroup.events")
		}}, err: "the volume is still held: process 77"},
		"the control group's events cannot be read": {h: tree, edit: []func(*fake){writer(pid, podA), func(f *fake) {
			f.link("cgroups"+podA+"/cgroup.events", "cgroup.events")
		}}, err: "waiting for control group " + podA + " to end: open"},
		"the control group cannot be waited for": {h: tree, edit: []func(*fake){writer(pid, podA), fails("await"), func(f *fake) { f.waits = nil }}, err: "waiting for control group " + podA + " to end: device or resource busy"},
		"the control group does not end":         {h: tree, edit: []func(*fake){writer(pid, podA), func(f *fake) { f.waits = nil }}, err: "control group " + podA + " has processes that do not end"},
		"the control group has gone":             {h: tree, edit: []func(*fake){writer(pid, podA), func(f *fake) { f.remove("cgroups" + podA) }}, err: "the volume is still held: process 77"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			for _, edit := range tc.edit {
				edit(f)
			}
			err := f.kernel.Stop(tc.h)
			if !says(err, tc.err) || !slices.Equal(f.did, tc.did) {
				t.Errorf("it did %q: %v", f.did, err)
			}
			if strings.Contains(tc.err, "still held") && strings.Contains(err.Error(), "control group") {
				t.Errorf("a control group that has ended is called a failure: %v", err)
			}
			if free := f.kernel.Free(tc.h); (free == nil) != (tc.err == "") {
				t.Errorf("and then: %v", free)
			}
			if covered := len(f.told) == 0; covered != (f.fails["cover /data"] == nil) {
				t.Errorf("it tells %q", f.told)
			}
		})
	}
}

func TestAProcessWhoseFirstThreadHasEndedIsKilledByItself(t *testing.T) {
	f := newFake(t)
	for pid, cgroup := range map[int]string{77: podA, 78: podA + "/nested", 79: podB} {
		f.process(pid, cgroup)
	}
	f.link(task+"fd/9", onVolume)
	f.write("cgroups"+podA+"/cgroup.procs", "77\n79\n0\n") // 79 has another group meanwhile, and 0 is of another namespace
	f.write("cgroups"+podA+"/nested/cgroup.procs", "78\n")
	f.waits = func() {
		if len(f.did) == 2 {
			f.write("cgroups"+podA+"/cgroup.events", "populated 0\n")
		}
	}
	if err := f.kernel.Stop(tree); err != nil || !slices.Equal(f.did, []string{"end 77", "end 78"}) {
		t.Errorf("it did %q: %v", f.did, err)
	}
}

func fails(call string) func(f *fake) { return func(f *fake) { f.fails[call] = errBusy } }

// sees begins a pod with a mount that another mount namespace gave it, or that it gives to others.
func sees(f *fake) {
	f.process(pid, podA)
	f.mounts("77", f.mount("8:1", "/", "/data", "shared:1", "ext4"))
	f.waits = func() { f.kills(pid, podA) }
}

func mounted(paths ...string) func(f *fake) { return func(f *fake) { f.volume(tree, paths...) } }

func diskMounted(f *fake) { f.volume(disk, "/data") }

// A pod's mount of its own volume lies on the root of its container. With mountPropagation: Bidirectional the kernel shows
// it as shared, and leaves it in its place when the machine's goes.
func TestAPodThatSharesTheMountOfItsOwnVolumeIsStoppedOnceTheMachinesHasGone(t *testing.T) {
	f := newFake(t)
	mounted("/data")(f)
	sees(f)
	if err := f.kernel.Stop(tree); err == nil {
		t.Error("it is called free")
	}
	if err := f.kernel.Stop(tree); err != nil || !slices.Equal(f.did, []string{"unmount /data", "cover /data", "kill " + podA}) {
		t.Errorf("it did %q: %v", f.did, err)
	}
}

// The agent unmounts, too.
func TestAPodThatOnlySeesAMountWhichGoesMeanwhileIsSpared(t *testing.T) {
	f := newFake(t)
	mounted("/data")(f)
	sees(f)
	f.looks = func(string) { f.mounts("self") }
	_ = f.kernel.Stop(tree)
	if len(f.did) > 0 {
		t.Errorf("it did %q", f.did)
	}
}

func TestAPodOfWhichTwoProcessesHoldAVolumeIsKilledOnce(t *testing.T) {
	f := newFake(t)
	for _, p := range []struct {
		pid    int
		cgroup string
	}{{75, podB}, {76, podA}, {77, podB}, {78, podA}} {
		f.process(p.pid, p.cgroup)
	}
	holders := []holder{{cgroup: podB}, {cgroup: podA}, {cgroup: podB}, {cgroup: podA, passing: true}, {cgroup: "/system.slice/x"}}
	if got := f.kernel.mayKill(holders, true); !slices.Equal(got, []string{podA, podB}) {
		t.Errorf("it may kill %v", got)
	}
}

func TestTheAgentsPodIsKnownOnlyWhereItIsAPod(t *testing.T) {
	for agent, may := range map[string]bool{
		"":                       true,  // it has not spoken yet
		"/system.slice/agent":    true,  // it is no pod
		"/":                      true,  //
		pods + "/pod-a/agent":    false, // it shares the pod
		pods + "/pod-a/one":      false,
		pods + "-more/pod-a/one": true,
	} {
		k := &Kernel{pods: pods, own: pods + "/pod-guard/one", agent: func() string { return agent }}
		if k.isTenant(podA) != may {
			t.Errorf("with the agent in %q, it may be killed: %v", agent, !may)
		}
	}
}

func TestADeviceIsOpenedByItsNumberOrNotAtAll(t *testing.T) {
	gone := errors.New("no such device or address")
	for name, tc := range map[string]struct {
		edit func(f *fake)
		err  string
	}{
		"it is there":      {func(*fake) {}, ""},
		"it is gone":       {func(f *fake) { f.remove("sys/dev/block/0:0") }, ""}, // it takes no write
		"its node is gone": {func(f *fake) { f.remove("dev/disk") }, ""},
		"it does not tell": {func(f *fake) { f.directory("sys/dev/block/0:0/uevent") }, "looking for block device 0:0"},
		"it has no name":   {func(f *fake) { f.write("sys/dev/block/0:0/uevent", "MAJOR=0\n") }, "the kernel has no name for block device 0:0"},
		"it does not open": {func(f *fake) { f.opens = func(string, int) (*os.File, error) { return nil, gone } }, "opening block device 0:0: no such device"},
		"it was given up": {func(f *fake) {
			f.write("sys/dev/block/0:0/device/state", "offline\n")
			f.opens = func(string, int) (*os.File, error) { return nil, unix.ENXIO }
		}, ""},
		"it is another device": {func(f *fake) {
			f.opens = func(_ string, flags int) (*os.File, error) { return os.OpenFile(os.DevNull, flags, 0) }
		}, "is not block device 0:0"},
		"it was closed":      {func(f *fake) { f.opens = closed }, "bad file descriptor"},
		"the kernel refuses": {fails("read-only disk false"), "changing whether block device 0:0 may be written: device or resource busy"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			tc.edit(f)
			if err := f.kernel.Allow(disk); !says(err, tc.err) {
				t.Errorf("allowing writes: %v", err)
			}
			if err := f.kernel.Allow(guard.Holding{Device: "0:0"}); err != nil {
				t.Errorf("a tree is never read-only: %v", err)
			}
		})
	}
}

func closed(path string, flags int) (*os.File, error) {
	file, err := os.OpenFile(path, flags, 0)
	return file, errors.Join(err, file.Close())
}

func TestADeviceIsFreeOnlyIfNothingUsesItAndWhatWasWrittenHasReachedIt(t *testing.T) {
	pipe, _, err := os.Pipe() // it cannot be flushed
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		edit func(f *fake)
		err  string
	}{
		"nothing uses it":   {func(*fake) {}, ""},
		"it is gone":        {func(f *fake) { f.remove("sys/dev/block/0:0") }, ""},
		"a filesystem does": {func(f *fake) { f.opens = func(string, int) (*os.File, error) { return nil, unix.EBUSY } }, "a filesystem or another device still uses the volume"},
		"it does not open":  {func(f *fake) { f.opens = func(string, int) (*os.File, error) { return nil, unix.ENXIO } }, "opening block device 0:0"},
		"the kernel has given it up": {func(f *fake) {
			f.write("sys/dev/block/0:0/device/state", "offline\n")
			f.opens = func(string, int) (*os.File, error) { return nil, unix.ENXIO }
		}, ""},
		"its session is away": {func(f *fake) {
			f.write("sys/dev/block/0:0/device/state", "transport-offline\n")
			f.opens = func(string, int) (*os.File, error) { return nil, unix.ENXIO }
		}, "opening block device 0:0"},
		"it is given up, and was open": {func(f *fake) {
			f.write("sys/dev/block/0:0/device/state", "offline\n")
			f.opens = func(string, int) (*os.File, error) { return nil, unix.EBUSY }
		}, "a filesystem or another device still uses the volume"},
		"it takes no flush": {func(f *fake) { f.opens = func(string, int) (*os.File, error) { return pipe, nil } }, "flushing block device 0:0"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			exclusively := false
			tc.edit(f)
			if opens := f.opens; opens == nil {
				f.opens = func(path string, flags int) (*os.File, error) {
					exclusively = flags&unix.O_EXCL != 0
					return os.OpenFile(path, flags&^unix.O_EXCL, 0)
				}
			}
			err := f.kernel.Free(disk)
			if !says(err, tc.err) || name == "nothing uses it" && !exclusively {
				t.Errorf("%v; opened exclusively: %t", err, exclusively)
			}
			if err := f.kernel.Free(guard.Holding{Device: "0:0"}); err != nil {
				t.Errorf("a tree has no device: %v", err)
			}
		})
	}
}

func TestALoopDeviceThatIsMadeOfAVolumeHoldsIt(t *testing.T) {
	number := func(major, minor uint32) uint64 { return unix.Mkdev(major, minor) }
	for name, tc := range map[string]struct {
		h     guard.Holding
		loop  unix.LoopInfo64
		fails error
		err   string
	}{
		"of another file":                    {h: tree, loop: unix.LoopInfo64{Device: number(9, 9)}},
		"of a file in it":                    {h: tree, loop: unix.LoopInfo64{Device: number(8, 1)}, err: "still held: loop0 is made of it"},
		"of a file in a subvolume":           {h: subvol, loop: unix.LoopInfo64{Device: number(0, 31)}, err: "still held: loop0 is made of it"},
		"of the device":                      {h: disk, loop: unix.LoopInfo64{Device: number(0, 5)}, err: "still held: loop0 is made of it"},
		"of another device":                  {h: disk, loop: unix.LoopInfo64{Device: number(0, 5), Rdevice: number(8, 1)}},
		"of the device of another tree":      {h: tree, loop: unix.LoopInfo64{Device: number(0, 5), Rdevice: number(8, 1)}},
		"of nothing any more":                {h: tree, fails: unix.ENXIO},
		"of something that it does not name": {h: tree, fails: unix.EIO, err: "asking loop0 what it is made of"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.write("sys/block/loop0/loop/backing_file", "/x")
			f.write("sys/block/loop1/loop/backing_file", "/gone")
			f.write("dev/loop0", "")
			f.loops["loop0"], f.fails["loop0"] = &tc.loop, tc.fails
			if err := f.kernel.Free(tc.h); !says(err, tc.err) {
				t.Error(err)
			}
		})
	}
	f := newFake(t)
	f.write("sys/block/loop0/loop/backing_file", "/x")
	f.opens = func(string, int) (*os.File, error) { return nil, unix.EIO }
	if err := f.kernel.Free(tree); !says(err, "asking a loop device what it is made of") {
		t.Errorf("a loop device does not open: %v", err)
	}
}

func TestAGuardBeginsOnlyWhereItCanStopPods(t *testing.T) {
	for name, tc := range map[string]struct {
		pods string
		edit func(f *fake)
		err  string
	}{
		"in a pod":                            {"", func(*fake) {}, ""},
		"with the pods named":                 {pods, func(f *fake) { f.write("proc/self/cgroup", "0::/system.slice/guard\n") }, ""},
		"outside of a pod":                    {"", func(f *fake) { f.write("proc/self/cgroup", "0::/system.slice/guard\n") }, "name the control group of all pods"},
		"without a control group":             {"", func(f *fake) { f.write("proc/self/cgroup", "1:name=systemd:/x\n") }, "in no control group of version 2"},
		"without control groups":              {"", func(f *fake) { f.mounts("self", f.mount("0:26", "/", "/cgroups", "", "cgroup")) }, "no control groups of version 2"},
		"without a mount table":               {"", func(f *fake) { f.remove("proc/self/mountinfo") }, "no such file"},
		"where it does not see the pods":      {"/kubepods", func(*fake) {}, "the control group of all pods, /kubepods, is not below"},
		"where the pods are no control group": {"/file", func(f *fake) { f.write("cgroups/file", "") }, "the control group of all pods, /file, is not below"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			tc.edit(f)
			k, err := Config{Pods: tc.pods}.kernelOf(f.host())
			if !says(err, tc.err) || err == nil && (k.pods != pods || k.cgroups != filepath.Join(f.root, "cgroups")) {
				t.Errorf("%+v, %v", k, err)
			}
		})
	}
}

func TestTheControlGroupOfAProcessIsThatOfVersion2AndInAPod(t *testing.T) {
	for cgroup, want := range map[string]string{podA: podA, pods: "", "/system.slice/sshd.service": "", "/": ""} {
		f := newFake(t)
		f.process(pid, cgroup)
		if got, err := f.kernel.CgroupOf(pid); got != want || err != nil {
			t.Errorf("of a process in %s it is %q, %v", cgroup, got, err)
		}
		f.write(proc+"cgroup", "1:name=systemd:/other\n")
		if got, err := f.kernel.CgroupOf(pid); got != "" || !says(err, "in no control group of version 2") {
			t.Errorf("without one it is %q, %v", got, err)
		}
	}
}
