package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// BusyError says that another command is changing the cluster.
type BusyError struct{ Name string }

func (e *BusyError) Error() string {
	return fmt.Sprintf("another lab command is changing cluster %q: try again when it has finished", e.Name)
}

// fileLock keeps two commands from changing one cluster at the same time. The kernel
// frees it when the holder dies.
type fileLock struct{ file *os.File }

// takeLock takes the lock file at path, or returns a [BusyError] at once: a
// second command that waited silently would look as if it hung.
func takeLock(path, name string) (*fileLock, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("creating state directory: %w", err)
	}
	for {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
		if err != nil {
			return nil, fmt.Errorf("opening lock: %w", err)
		}
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			f.Close()
			if errors.Is(err, unix.EWOULDBLOCK) {
				return nil, &BusyError{Name: name}
			}
			return nil, fmt.Errorf("locking %s: %w", path, err)
		}
		// The previous holder may have removed the file: then other commands lock
		// the new file of that name, and this one protects nothing.
		if same, err := isAt(f, path); err != nil || same {
			return &fileLock{f}, err
		}
		f.Close()
	}
}

func isAt(f *os.File, path string) (bool, error) {
	ours, err := f.Stat()
	if err != nil {
		return false, err
	}
	there, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(ours, there), err
}

func (l *fileLock) release() { l.file.Close() }

// remove releases the lock and leaves no file.
func (l *fileLock) remove() error {
	defer l.file.Close()
	if err := os.Remove(l.file.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing lock: %w", err)
	}
	return nil
}
