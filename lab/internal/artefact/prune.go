package artefact

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"golang.org/x/sys/unix"
)

// Entry is an artefact in the store, or the leftovers of one that was never finished.
type Entry struct {
	// Name of its directory.
	Name string
	// Size is how much of the disk it takes, in bytes.
	Size int64
	// Used is the time of the last Get. It is zero if Get cannot return the entry, because
	// a removal was interrupted.
	Used time.Time
}

// goneSuffix ends the name of a directory that is being removed.
const goneSuffix = ".gone"

// address matches the names that Get gives, and those of the leftovers of a maker that died.
var address = regexp.MustCompile(`^([a-z0-9][a-z0-9.-]*-[0-9a-f]{20})(\.part|\` + goneSuffix + `)?$`)

// Entries lists the artefacts by name. It leaves out all other files in the store.
func (s *Store) Entries() ([]Entry, error) {
	dirs, err := os.ReadDir(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing artefacts: %w", err)
	}
	var all []Entry
	for _, d := range dirs {
		if !d.IsDir() || !address.MatchString(d.Name()) {
			continue
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed meanwhile
		}
		if err != nil {
			return nil, fmt.Errorf("listing artefacts: %w", err)
		}
		e := Entry{Name: d.Name(), Size: sizeOf(filepath.Join(s.Dir, d.Name()))}
		if filepath.Ext(e.Name) != goneSuffix {
			e.Used = info.ModTime()
		}
		all = append(all, e)
	}
	return all, nil
}

// sizeOf counts blocks, since images have holes. Files that it cannot read count nothing:
// the figure is for people.
func sizeOf(dir string) (bytes int64) {
	_ = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		var st unix.Stat_t
		if err == nil && unix.Lstat(path, &st) == nil {
			bytes += st.Blocks * 512
		}
		return nil
	})
	return bytes
}

// Stale returns the entries whose last use is before a moment.
func Stale(all []Entry, since time.Time) []Entry {
	var stale []Entry
	for _, e := range all {
		if e.Used.Before(since) {
			stale = append(stale, e)
		}
	}
	return stale
}

// Remove removes an entry and returns whether it did. An entry that was used since it was
// listed stays, and so does one that is being made. Open files of it stay readable.
func (s *Store) Remove(ctx context.Context, e Entry) (bool, error) {
	form := address.FindStringSubmatch(e.Name)
	if form == nil {
		return false, fmt.Errorf("removing %q: it is no artefact", e.Name)
	}
	if err := os.MkdirAll(filepath.Join(s.Dir, "log"), 0o755); err != nil {
		return false, fmt.Errorf("removing %s: %w", e.Name, err)
	}
	// Remove does not wait for the lock: a maker may hold it for an hour.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	unlock, err := Lock(ctx, filepath.Join(s.Dir, "log", form[1]+".lock"), cancel)
	if errors.Is(err, context.Canceled) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("removing %s: %w", e.Name, err)
	}
	defer unlock()
	removed, err := s.remove(e, form[1])
	if err != nil {
		return false, fmt.Errorf("removing %s: %w", e.Name, err)
	}
	return removed, nil
}

func (s *Store) remove(e Entry, address string) (bool, error) {
	dir, gone := filepath.Join(s.Dir, e.Name), filepath.Join(s.Dir, address+goneSuffix)
	if dir != gone {
		if aside, err := setAside(dir, gone, e.Used); err != nil || !aside {
			return false, err
		}
	}
	return true, errors.Join(os.RemoveAll(gone), removeFile(filepath.Join(s.Dir, "log", address+".log")))
}

// setAside moves an artefact out of its place, so that Get cannot return one that is half
// removed. It leaves an artefact that was used since. Get takes no lock, so setAside checks
// the time again after the move.
func setAside(dir, gone string, used time.Time) (bool, error) {
	if err := os.RemoveAll(gone); err != nil {
		return false, err
	}
	if same, err := usedAt(dir, used); err != nil || !same {
		return false, err
	}
	if err := os.Rename(dir, gone); err != nil {
		return false, err
	}
	same, err := usedAt(gone, used)
	if err != nil || !same {
		return false, errors.Join(err, os.Rename(gone, dir))
	}
	return true, nil
}

func usedAt(dir string, t time.Time) (bool, error) {
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && info.ModTime().Equal(t), err
}

func removeFile(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
