package network

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"
)

// namespaceDir is where iproute2 keeps named namespaces.
const namespaceDir = "/run/netns"

// ensureNamespace makes a network namespace and mounts it on the file at path, unless it
// is there already.
func ensureNamespace(path string) error {
	exists, err := isNamespace(path)
	if err != nil || exists {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o444)
	if err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread is in the new namespace and ends with the goroutine
		result <- mountNewNamespace(path)
	}()
	return <-result
}

func mountNewNamespace(path string) error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("leaving the current namespace: %w", needRoot(err))
	}
	own := fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid())
	if err := unix.Mount(own, path, "none", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("keeping the namespace: %w", needRoot(err))
	}
	return nil
}

// isNamespace reports whether a namespace is mounted at path. An interrupted creation
// leaves a plain file.
func isNamespace(path string) (bool, error) {
	var fs unix.Statfs_t
	err := unix.Statfs(path, &fs)
	if errors.Is(err, unix.ENOENT) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking at namespace %s: %w", path, err)
	}
	return fs.Type == unix.NSFS_MAGIC, nil
}

func removeNamespace(path string) error {
	for {
		exists, err := isNamespace(path)
		if err != nil {
			return err
		}
		if !exists {
			break
		}
		if err := unix.Unmount(path, unix.MNT_DETACH); err != nil {
			return fmt.Errorf("unmounting: %w", needRoot(err))
		}
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// needRoot adds to an error about missing rights that root is needed.
func needRoot(err error) error {
	if errors.Is(err, unix.EPERM) && os.Geteuid() != 0 {
		return fmt.Errorf("%w: the lab must be run as root", err)
	}
	return err
}
