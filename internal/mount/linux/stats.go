package linux

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/btrfs/kernel"
)

// flights are the running calls of statfs, one per path. However many callers ask for the
// figures of a dead device, only one thread hangs.
type flights struct {
	mu     sync.Mutex
	byPath map[string]*flight
}

type flight struct {
	done  chan struct{}
	stats mount.Stats
	err   error
}

// statsTimeout is how long a filesystem may take to return its figures.
const statsTimeout = 5 * time.Second

// Stats implements mount.Mounter.
func (m *Mounter) Stats(ctx context.Context, path string) (mount.Stats, error) {
	if err := mount.CheckPath(path); err != nil {
		return mount.Stats{}, err
	}
	entry, err := lookup(path)
	if err != nil {
		return mount.Stats{}, err
	}
	if entry == nil {
		return mount.Stats{}, fmt.Errorf("%w: %s", mount.ErrNotMounted, path)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, statsTimeout,
		fmt.Errorf("%w: the filesystem at %s does not tell its figures", provision.ErrUnavailable, path))
	defer cancel()
	f := m.stats.join(path, statfs)
	select {
	case <-f.done:
		return f.stats, f.err
	case <-ctx.Done():
		return mount.Stats{}, context.Cause(ctx)
	}
}

// join returns the running call for a path, or starts one.
func (f *flights) join(path string, read func(string) (mount.Stats, error)) *flight {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := f.byPath[path]; now != nil {
		return now
	}
	now := &flight{done: make(chan struct{})}
	if f.byPath == nil {
		f.byPath = map[string]*flight{}
	}
	f.byPath[path] = now
	go func() { // ends when the kernel answers; there is no way to stop it
		now.stats, now.err = read(path)
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.byPath, path)
		close(now.done)
	}()
	return now
}

func statfs(path string) (mount.Stats, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return mount.Stats{}, fmt.Errorf("%w: reading figures of %s: %w", provision.ErrUnavailable, path, err)
	}
	if st.Type == unix.BTRFS_SUPER_MAGIC {
		if limit, taken, ok := kernel.Figures(path); ok {
			return mount.Stats{Total: limit, Available: max(0, min(limit-taken, int64(st.Bavail)*st.Bsize)), Used: taken}, nil //nolint:gosec // sizes of real disks
		}
	}
	bytes := func(blocks uint64) int64 { return int64(blocks) * st.Bsize } //nolint:gosec // sizes of real disks
	return mount.Stats{
		Total: bytes(st.Blocks), Available: bytes(st.Bavail), Used: bytes(st.Blocks - st.Bfree),
		Inodes: int64(st.Files), InodesAvailable: int64(st.Ffree), InodesUsed: int64(st.Files - st.Ffree), //nolint:gosec // counts
	}, nil
}
