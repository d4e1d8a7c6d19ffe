package staging

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/provision"
)

// ShutDowns finds filesystems that have shut themselves down: the disk failed writes, and the filesystem takes none before
// it is mounted anew, also when the disk is well again. It has nothing to do with a mount that was asked to be
// read-only. The zero value is ready.
type ShutDowns struct {
	mu sync.Mutex
	// sound are the devices whose ext4 did not refuse when it was asked, with the errors that it had then.
	sound map[string]string
}

// answering is how long a filesystem may take for an answer. One that has shut itself down answers at once.
const answering = time.Second

// Below returns the paths below a directory where such a filesystem is mounted.
func (s *ShutDowns) Below(dir string) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	below := strings.TrimSuffix(dir, "/") + "/"
	lines, err := mountinfo.GetMounts(func(line *mountinfo.Info) (skip, stop bool) {
		return !strings.HasPrefix(line.Mountpoint, below) || line.FSType != provision.Ext4 && line.FSType != provision.XFS, false
	})
	if err != nil {
		return nil, fmt.Errorf("reading mount table: %w", err)
	}
	var paths []string
	for _, line := range lines {
		if s.hasShutDown(line, kernelAsked{}) {
			paths = append(paths, line.Mountpoint)
		}
	}
	return paths, nil
}

// asker asks the kernel about a filesystem.
type asker interface {
	// stat asks about the file at a path, without asking the disk.
	stat(path string) error
	// errors is the number of errors that ext4 has met on a device, as the kernel writes it; empty if it is zero.
	errors(device string) string
	// writes has ext4 begin a change of the directory at a path that changes nothing.
	writes(path string) error
}

// hasShutDown tells it of a line of the mount table. XFS then answers each question about a file with an error of I/O.
// Some kernels show of ext4 that it is read-only under the mount, or have a word for it. Others show nothing: that of
// Debian 12 even lets it be read and synced. All count the errors, though. So after each new one the filesystem is asked to
// begin a change, which it refuses. To ask it each second would have the disk write each five seconds.
func (s *ShutDowns) hasShutDown(line *mountinfo.Info, ask asker) bool {
	if line.FSType == provision.XFS {
		return errors.Is(ask.stat(line.Mountpoint), unix.EIO)
	}
	if slices.Contains(strings.Split(line.Options, ","), "ro") { // a mount that was asked to be so, of one that may be so
		return false
	}
	if slices.ContainsFunc(strings.Split(line.VFSOptions, ","), func(o string) bool { return o == "ro" || o == "emergency_ro" || o == "shutdown" }) {
		return true
	}
	device := fmt.Sprintf("%d:%d", line.Major, line.Minor)
	count := ask.errors(device)
	if count == "" {
		delete(s.sound, device)
		return false
	}
	if s.sound[device] == count {
		return false
	}
	if err := ask.writes(line.Mountpoint); errors.Is(err, unix.EIO) || errors.Is(err, unix.EROFS) {
		return true // it is asked again each time: it asks no disk any more, and may be mounted anew
	}
	if s.sound == nil {
		s.sound = map[string]string{}
	}
	s.sound[device] = count
	return false
}

// kernelAsked asks the kernel of this machine.
type kernelAsked struct{}

func (kernelAsked) stat(path string) error {
	var s unix.Stat_t
	return unix.Stat(path, &s)
}

func (kernelAsked) errors(device string) string {
	link, err := os.Readlink("/sys/dev/block/" + device)
	if err != nil {
		return ""
	}
	count, err := os.ReadFile(filepath.Join("/sys/fs/ext4", filepath.Base(link), "errors_count"))
	if err != nil || strings.TrimSpace(string(count)) == "0" {
		return ""
	}
	return strings.TrimSpace(string(count))
}

// writes removes an attribute that no file has: a journal that has ended refuses to begin that. It leaves a call that
// hangs to end by itself: a filesystem that waits for its disk has not shut itself down.
func (kernelAsked) writes(path string) error {
	done := make(chan error, 1)
	go func() { done <- unix.Lremovexattr(path, "trusted.berth.none") }()
	select {
	case err := <-done:
		return err
	case <-time.After(answering):
		return nil
	}
}
