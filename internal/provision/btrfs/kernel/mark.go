package kernel

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// markID is the id of the quota group that marks a filesystem in which Berth made something. No
// subvolume can have it: it is half of all the ids of subvolumes, and "berth".
const markID = 1<<47 | 0x6265727468

// Mark marks the filesystem as one in which Berth makes something. The mark lasts as long as the
// quotas.
func (f *Filesystem) Mark() error {
	err := ioctl(f.top, write, doGroup, &groupArgs{1, volumeLevel | markID})
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("marking the filesystem: %w", err)
	}
	return nil
}

// Marked says whether the mounted filesystem of a UUID bears that mark. It does not open it.
func Marked(fsid string) bool {
	_, err := os.Stat(filepath.Join(shown, fsid, "qgroups", fmt.Sprintf("1_%d", uint64(markID))))
	return err == nil
}
