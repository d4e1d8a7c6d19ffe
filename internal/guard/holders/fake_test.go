package holders

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/guard"
)

// Where the links of a fake's processes lead to. Each has the number of its filesystem, or its own.
const (
	elsewhere = "elsewhere"
	onVolume  = "a file on 8:1"
	isDevice  = "block device 0:0"
	isOther   = "block device 8:2"
	isChar    = "character device 0:0"
	onTree    = "a file on 0:31"
	silent    = "what does not answer"
	ended     = "what has ended"
)

var errSilent = errors.New("input/output error")

// fake is a machine in a directory. Its kernel does what it is told, and the fake remembers that.
type fake struct {
	t      *testing.T
	root   string
	kernel *Kernel
	did    []string
	// fails are calls that fail.
	fails map[string]error
	// looks is called before a link is looked at, waits while a control group is to end.
	looks func(link string)
	waits func()
	// opens plays what opening a device gives, and loops what a loop device is made of.
	opens func(path string, flags int) (*os.File, error)
	loops map[string]*unix.LoopInfo64
	told  []string
	// hangs are processes that do not tell their mappings, and waited is for how long each was waited for.
	hangs  []string
	waited []time.Duration
	// shares: all threads have the table of files of their process.
	shares bool
}

const pods = "/kubepods.slice"

func newFake(t *testing.T) *fake {
	t.Helper()
	f := &fake{t: t, root: t.TempDir(), fails: map[string]error{}, loops: map[string]*unix.LoopInfo64{}}
	f.write("proc/self/cgroup", "0::"+pods+"/pod-guard/one\n")
	f.link("proc/self/ns/mnt", "mnt:[guard]")
	f.mounts("self", f.mount("0:26", "/", filepath.Join(f.root, "cgroups"), "", "cgroup2"))
	f.write("cgroups"+pods+"/cgroup.events", "")
	f.process(1, "/init.scope")
	f.link("proc/1/ns/mnt", "mnt:[init]")
	f.link("proc/1/task/1/ns/mnt", "mnt:[init]")
	f.write("sys/dev/block/0:0/uevent", "MAJOR=0\nDEVNAME=disk\n")
	f.write("sys/dev/block/8:1/uevent", "DEVNAME=disk\n") // which it is not
	f.write("dev/disk", "")
	log := funcr.New(func(_, args string) { f.told = append(f.told, args) }, funcr.Options{})
	kernel, err := Config{Agent: func() string { return pods + "/pod-agent/one" }, Log: log}.kernelOf(f.host())
	if err != nil {
		t.Fatal(err)
	}
	f.kernel = kernel
	return f
}

func (f *fake) host() host {
	return host{proc: filepath.Join(f.root, "proc"), sys: filepath.Join(f.root, "sys"), dev: filepath.Join(f.root, "dev"), calls: f}
}

func (f *fake) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *fake) write(name, text string) {
	f.t.Helper()
	path := filepath.Join(f.root, name)
	f.must(os.MkdirAll(filepath.Dir(path), 0o755))
	f.must(os.WriteFile(path, []byte(text), 0o600))
}

func (f *fake) link(name, to string) {
	f.t.Helper()
	path := filepath.Join(f.root, name)
	f.remove(name)
	f.must(os.MkdirAll(filepath.Dir(path), 0o755))
	f.must(os.Symlink(to, path))
}

func (f *fake) remove(name string) { f.must(os.RemoveAll(filepath.Join(f.root, name))) }

// directory replaces a file by a directory, which cannot be read as one.
func (f *fake) directory(name string) {
	f.remove(name)
	f.must(os.MkdirAll(filepath.Join(f.root, name), 0o755))
}

// process begins one that holds nothing, in a mount namespace of its own.
func (f *fake) process(pid int, cgroup string) {
	f.t.Helper()
	dir := fmt.Sprintf("proc/%d/", pid)
	f.began(pid, 1000)
	f.write(dir+"cgroup", "1:name=systemd:/other\n0::"+cgroup+"\n")
	f.thread(pid, pid)
	f.mounts(strconv.Itoa(pid))
	f.write("cgroups"+cgroup+"/cgroup.events", "populated 1\nfrozen 0\n")
}

func (f *fake) began(pid, at int) {
	f.write(fmt.Sprintf("proc/%d/stat", pid), fmt.Sprintf("%d (a) b 7 (c) S%s %d 0 0\n", pid, strings.Repeat(" 0", 18), at))
}

func (f *fake) thread(pid, thread int) {
	dir := fmt.Sprintf("proc/%d/task/%d/", pid, thread)
	for _, name := range []string{"cwd", "root", "exe", "fd/0"} {
		f.link(dir+name, elsewhere)
	}
	f.write(dir+"maps", "7f00-7f02 r-xp 00000000 00:05 12 /bin/sh\n")
	f.link(dir+"ns/mnt", fmt.Sprintf("mnt:[%d]", thread))
	f.write(dir+"mountinfo", "")
}

func (f *fake) mount(device, root, at, optional, kind string) string {
	return fmt.Sprintf("36 35 %s %s %s rw %s - %s none rw\n", device, root, at, optional, kind)
}

func (f *fake) mounts(process string, lines ...string) {
	f.write("proc/"+process+"/mountinfo", strings.Join(lines, ""))
	f.write("proc/"+process+"/task/"+process+"/mountinfo", strings.Join(lines, ""))
}

func (f *fake) stat(link string) (st unix.Statx_t, err error) {
	if f.looks != nil {
		f.looks(link)
	}
	to, err := os.Readlink(link)
	if err != nil {
		return st, err
	}
	st.Dev_major, st.Dev_minor, st.Mode = 0, 5, unix.S_IFREG
	switch to {
	case onVolume:
		st.Dev_major, st.Dev_minor = 8, 1
	case onTree:
		st.Dev_minor = 31
	case isDevice:
		st.Mode = unix.S_IFBLK
	case isOther:
		st.Mode, st.Rdev_major, st.Rdev_minor = unix.S_IFBLK, 8, 2
	case isChar:
		st.Mode = unix.S_IFCHR
	case silent:
		return st, errSilent
	case ended:
		return st, unix.ESRCH
	}
	return st, nil
}

func (f *fake) within(patience time.Duration, process string, ask func() (string, error)) (string, error) {
	f.waited = append(f.waited, patience)
	if slices.Contains(f.hangs, filepath.Base(process)) {
		return "", errHangs
	}
	return ask()
}

func (f *fake) sameFiles(int, int) bool { return f.shares }

func (f *fake) open(path string, flags int) (*os.File, error) {
	if f.opens != nil {
		return f.opens(path, flags)
	}
	return os.OpenFile(path, flags&^unix.O_EXCL, 0)
}

// does remembers a call, and plays whether it fails.
func (f *fake) does(what ...any) error {
	call := strings.TrimSpace(fmt.Sprintln(what...))
	f.did = append(f.did, call)
	return f.fails[call]
}

func (f *fake) readOnly(device *os.File, set bool) error {
	return f.does("read-only", filepath.Base(device.Name()), set)
}

func (f *fake) loop(device *os.File) (*unix.LoopInfo64, error) {
	name := filepath.Base(device.Name())
	return f.loops[name], f.fails[name]
}

func (f *fake) unmount(path string) error {
	if err := f.does("unmount", path); err != nil {
		return err
	}
	table := filepath.Join(f.root, "proc/self/mountinfo")
	text, err := os.ReadFile(table)
	f.must(err)
	lines, last := strings.SplitAfter(string(text), "\n"), -1
	for i, line := range lines {
		if strings.Contains(line, " "+path+" ") {
			last = i
		}
	}
	f.must(os.WriteFile(table, []byte(strings.Join(append(lines[:last:last], lines[last+1:]...), "")), 0o600))
	return nil
}

// end plays the end of a process that the end of its control group has passed over.
func (f *fake) end(pid int, still func() bool) error {
	if !still() {
		return nil
	}
	f.remove(fmt.Sprint("proc/", pid))
	return f.does("end", pid)
}

func (f *fake) cover(path string) error { return f.does("cover", path) }

func (f *fake) await(*os.File, time.Duration) error {
	if f.waits != nil {
		f.waits()
	}
	return f.fails["await"]
}

// kills plays the end of a control group with a process, once the kernel is told to end it.
func (f *fake) kills(pid int, cgroup string) {
	if text, _ := os.ReadFile(filepath.Join(f.root, "cgroups", cgroup, "cgroup.kill")); string(text) == "1" {
		f.did = append(f.did, "kill "+cgroup)
		f.remove(fmt.Sprint("proc/", pid))
		f.write("cgroups"+cgroup+"/cgroup.events", "populated 0\nfrozen 0\n")
	}
}

// says compares an error with the text that it must have; nil is the empty text.
func says(err error, text string) bool {
	return (err == nil) == (text == "") && strings.Contains(fmt.Sprint(cmp.Or(err, errors.New(""))), text)
}

var (
	tree   = guard.Holding{Device: "8:1"}
	disk   = guard.Holding{Device: "0:0", Block: true} // the number of a plain file's device, which is all that a test may make
	subvol = guard.Holding{Device: "0:30", Root: "/one", Files: "0:31"}
)
