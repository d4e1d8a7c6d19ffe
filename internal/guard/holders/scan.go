package holders

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/guard"
)

// holder is a process that can reach a volume.
type holder struct {
	pid    int
	cgroup string
	// why it is one, for people.
	why string
	// mount: its mount namespace has the volume mounted.
	mount bool
	// passing: it only has mounts that other mount namespaces gave it, or that it gives to others. While the
	// machine has the volume mounted, such a process is not stopped: the agent and many other pods of a
	// node see each volume that way, and lose it with the machine.
	passing bool
}

func (h holder) String() string { return fmt.Sprintf("process %d in %s %s", h.pid, h.cgroup, h.why) }

// homes are the processes whose mount namespaces are the guard's and the machine's own.
var homes = []string{"self", "1"}

// The kernel may keep the mappings of a process locked while that waits for a disk or a server that is gone. A search
// waits at most silence for the first such process, and at most brief for each other one.
const (
	silence = 5 * time.Second
	brief   = 500 * time.Millisecond
)

// scan returns the processes that hold a volume. An error means that there may be more: it is errHangs if all that
// is missing are mappings, and else the first of another kind.
func (m *host) scan(h guard.Holding) (out []holder, failed error) {
	pids, err := numbers(m.proc)
	if err != nil {
		return nil, err
	}
	home := map[string]bool{}
	for _, process := range homes {
		ns, _ := os.Readlink(filepath.Join(m.proc, process, "ns", "mnt")) // one that cannot be read has no name
		home[ns] = true
	}
	s := search{host: m, holding: h, home: home, tables: map[string][]*mountinfo.Info{}, patience: silence}
	for _, pid := range pids {
		if pid == os.Getpid() {
			continue
		}
		found, err := s.look(pid)
		switch {
		case vanished(err):
		case err != nil:
			if failed == nil || errors.Is(failed, errHangs) && !errors.Is(err, errHangs) {
				failed = fmt.Errorf("looking at process %d: %w", pid, err)
			}
		case found != nil:
			out = append(out, *found)
		}
	}
	return out, failed
}

// search is one scan.
type search struct {
	*host
	holding guard.Holding
	// home are the home namespaces, and tables the volume's mounts in the others that were read.
	home   map[string]bool
	tables map[string][]*mountinfo.Info
	// patience is for how long the next process is waited for.
	patience time.Duration
}

// look returns the process as a holder, nil if it is none. It reads the control group before and
// after, so that an answer about two processes, of which the second got the first one's number, is
// noticed: the process that began later counts.
func (s *search) look(pid int) (*holder, error) {
	dir := filepath.Join(s.proc, strconv.Itoa(pid))
	began, err := started(dir)
	if err != nil {
		return nil, err
	}
	out := &holder{pid: pid}
	if out.cgroup, err = cgroupOf(dir); err != nil {
		return nil, err
	}
	threads, err := numbers(filepath.Join(dir, "task"))
	if err != nil {
		return nil, err
	}
	if out.why, err = s.opened(dir, pid, threads); err != nil {
		return nil, err
	}
	var hangs error
	if out.why == "" {
		if out.why, err = s.mapped(dir, threads); errors.Is(err, errHangs) {
			hangs, s.patience = err, brief
		} else if err != nil {
			return nil, err
		}
	}
	if out.why == "" {
		out.mount = true
		if out.why, out.passing, err = s.mounted(dir, threads); out.why == "" {
			return nil, cmp.Or(hangs, err)
		}
	}
	again, err := started(dir)
	if err == nil && again != began {
		return s.look(pid)
	}
	return out, err
}

// started returns the time at which a process began, which tells it from another one that has its
// number later.
func started(dir string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return "", err
	}
	// A process chooses its own name, which stands in parentheses and may have any of them.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) < 20 {
		return "", fmt.Errorf("%s/stat has %d fields after the name", dir, len(fields))
	}
	return fields[19], nil
}

// cgroupOf returns the path of a process's control group of version 2.
func cgroupOf(dir string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, "cgroup"))
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		if path, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::"); ok {
			return path, nil
		}
	}
	return "", errors.New("it is in no control group of version 2")
}

// threadIn is the directory of a thread. A process whose first thread has ended shows by itself neither mappings nor
// mounts: those that go on have them.
func threadIn(dir string, thread int) string { return filepath.Join(dir, "task", strconv.Itoa(thread)) }

// opened says whether a thread of the process has a file of the volume open, runs one, or stands in one of its
// directories. Threads may have tables of files of their own. A table that a thread shares with the process is looked
// at once: a database has hundreds of threads, and thousands of files.
func (s *search) opened(dir string, pid int, threads []int) (string, error) {
	for _, thread := range threads {
		at := threadIn(dir, thread)
		for _, link := range []string{"cwd", "root", "exe"} {
			if is, err := s.on(filepath.Join(at, link)); err != nil || is {
				return "has its " + link + " there", err
			}
		}
		if thread != pid && s.sameFiles(pid, thread) {
			continue
		}
		files, err := numbers(filepath.Join(at, "fd"))
		if err != nil && !vanished(err) {
			return "", err
		}
		for _, file := range files {
			if is, err := s.on(filepath.Join(at, "fd", strconv.Itoa(file))); err != nil || is {
				return "has it open", err
			}
		}
	}
	return "", nil
}

// mapped says whether the process has mapped a file of the volume, or the device. All threads that have not ended have
// the same mappings.
func (s *search) mapped(dir string, threads []int) (string, error) {
	for _, thread := range threads {
		why, err := s.within(s.patience, threadIn(dir, thread), func() (string, error) { return s.mappedBy(dir, thread) })
		if !vanished(err) {
			return why, err
		}
	}
	return "", nil
}

// mappedBy is mapped for one thread; a thread that has ended has no mappings. Mappings of other files that cannot write
// to a device are passed over: a process may have many.
func (s *search) mappedBy(dir string, thread int) (string, error) {
	f, err := os.Open(filepath.Join(threadIn(dir, thread), "maps"))
	if err != nil {
		return "", err
	}
	defer f.Close()
	lines, ended := bufio.NewScanner(f), error(unix.ESRCH)
	for lines.Scan() {
		ended = nil
		fields := strings.Fields(lines.Text())
		if len(fields) < 5 || fields[4] == "0" || !strings.HasSuffix(fields[1], "s") && fields[3] != hexadecimal(s.holding.Device) {
			continue
		}
		// Only the directory of a process has the files of its mappings. The kernel takes a thread's number there, too.
		if is, err := s.on(filepath.Join(s.proc, strconv.Itoa(thread), "map_files", mapFile(fields[0]))); err != nil || is {
			return "has mapped it", err
		}
	}
	return "", cmp.Or(lines.Err(), ended)
}

// mapFile names the link in map_files of an area as maps writes it: "00400000-00452000" is 400000-452000 there.
func mapFile(area string) string {
	from, to, _ := strings.Cut(area, "-")
	bare := func(address string) string { return cmp.Or(strings.TrimLeft(address, "0"), "0") }
	return bare(from) + "-" + bare(to)
}

// hexadecimal writes "253:4" as the maps of a process do: "fd:04".
func hexadecimal(device string) string {
	var major, minor uint32
	if _, err := fmt.Sscanf(device, "%d:%d", &major, &minor); err != nil {
		return ""
	}
	return fmt.Sprintf("%02x:%02x", major, minor)
}

// on says whether a link of /proc leads to a file of the volume, or to the device.
func (s *search) on(link string) (bool, error) {
	h := s.holding
	st, err := s.stat(link)
	if vanished(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking at %s: %w", link, err)
	}
	if h.Block && st.Mode&unix.S_IFMT == unix.S_IFBLK && number(st.Rdev_major, st.Rdev_minor) == h.Device {
		return true, nil
	}
	return number(st.Dev_major, st.Dev_minor) == files(h), nil
}

// files is the device number that the volume's files show.
func files(h guard.Holding) string {
	if h.Files != "" {
		return h.Files
	}
	return h.Device
}

func number(major, minor uint32) string { return fmt.Sprintf("%d:%d", major, minor) }

// mounted says whether a thread of the process is in a mount namespace that has the volume mounted. A mount in a home
// namespace, the guard's or the machine's own, makes no process a holder: the guard unmounts it itself.
func (s *search) mounted(dir string, threads []int) (why string, passing bool, err error) {
	passing = true
	for _, thread := range threads {
		mounts, err := s.mountsOf(threadIn(dir, thread))
		if err != nil && !vanished(err) {
			return "", false, err
		}
		for _, at := range mounts {
			why = "has it mounted at " + at.Mountpoint
			passing = passing && at.Optional != ""
		}
	}
	return why, passing, nil
}

// mountsOf are the volume's mounts in the namespace of a thread, if that is no home namespace.
func (s *search) mountsOf(thread string) ([]*mountinfo.Info, error) {
	ns, err := os.Readlink(filepath.Join(thread, "ns", "mnt"))
	if err != nil || s.home[ns] {
		return nil, err
	}
	mounts, known := s.tables[ns]
	if !known {
		if mounts, err = table(filepath.Join(thread, "mountinfo"), s.holding); err != nil {
			return nil, err
		}
		s.tables[ns] = mounts
	}
	return mounts, nil
}

// here returns the volume's mounts in the home namespaces.
func (m *host) here(h guard.Holding) (all []*mountinfo.Info, err error) {
	for _, process := range homes {
		mounts, err := table(filepath.Join(m.proc, process, "mountinfo"), h)
		if err != nil {
			return nil, err
		}
		all = append(all, mounts...)
	}
	return all, nil
}

// table returns the volume's mounts in a mount table.
func table(path string, h guard.Holding) ([]*mountinfo.Info, error) {
	return mounts(path, func(e *mountinfo.Info) (skip, stop bool) { return !of(e, h), false })
}

// mounts returns those of a mount table that a filter takes.
func mounts(path string, filter mountinfo.FilterFunc) ([]*mountinfo.Info, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	found, err := mountinfo.GetMountsFromReader(f, filter)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return found, nil
}

func of(e *mountinfo.Info, h guard.Holding) bool {
	if number(uint32(e.Major), uint32(e.Minor)) != h.Device { //nolint:gosec // device numbers
		return false
	}
	return e.Root == h.Root || strings.HasPrefix(e.Root, h.Root+"/") // without a root, each
}

// numbers returns the names in a directory that are numbers.
func numbers(dir string) ([]int, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var out []int
	for _, name := range names {
		if n, err := strconv.Atoi(name); err == nil {
			out = append(out, n)
		}
	}
	return out, nil
}

// vanished says that a process, a thread or a file ended meanwhile.
func vanished(err error) bool {
	return errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH)
}
