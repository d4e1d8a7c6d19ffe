package kernel

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/provision"
)

// Subvolume is one subvolume of a filesystem. The UUID is its own: a snapshot of it has another,
// and so has what others put in its place.
type Subvolume struct {
	ID   uint64
	UUID string
}

// Identity of a subvolume of a filesystem.
func Identity(fsid string, s Subvolume) provision.Identity {
	return provision.Identity(fmt.Sprintf("btrfs:%s %d %s", fsid, s.ID, s.UUID))
}

// Prove returns nil if a descriptor stands for a directory in the subvolume of an identity.
func Prove(place *os.File, is provision.Identity) error {
	dir, err := readable(place)
	if err != nil {
		return fmt.Errorf("%w: %w", provision.ErrUnavailable, err)
	}
	defer dir.Close()
	fsid, s, err := inspect(dir)
	switch got := Identity(fsid, s); {
	case err != nil:
		return fmt.Errorf("%w: asking which subvolume %s is in: %w", provision.ErrUnavailable, dir.Name(), err)
	case got != is:
		return fmt.Errorf("%w: %s is in another subvolume: %s, not %s", provision.ErrUnavailable, dir.Name(), got, is)
	}
	return nil
}

func inspect(dir *os.File) (fsid string, s Subvolume, err error) {
	var info infoArgs
	var of subvolumeArgs
	if err := errors.Join(ioctl(dir, read, doInfo, &info), ioctl(dir, read, doSubvolumeInfo, &of)); err != nil {
		return "", s, err
	}
	return uuid(info.fsid), Subvolume{of.id, uuid(of.uuid)}, nil
}

func uuid(b [16]byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// Figures returns the limit of the subvolume that a directory is in, and how much of that is taken.
// There is none for a subvolume without a limit of Berth's.
func Figures(path string) (limit, taken int64, ok bool) {
	dir, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return 0, 0, false
	}
	defer dir.Close()
	fsid, s, err := inspect(dir)
	if err != nil {
		return 0, 0, false
	}
	q := quotaOf(fsid, volumeLevel|s.ID)
	return q.Limit, q.Taken, q.Limit > 0
}
