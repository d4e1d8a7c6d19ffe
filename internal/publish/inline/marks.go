package inline

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"berth.dev/berth/internal/provision"
)

// Mark says that a volume's data was handed to its pod.
type Mark struct {
	ID    string
	Owner provision.Inline
}

// Marks outlive the process and the machine's restart. Setting a mark that is
// set, and removing one that is not, is no error.
type Marks interface {
	Has(m Mark) (bool, error)
	Set(m Mark) error
	Remove(m Mark) error
	List() ([]Mark, error)
}

// MarkDir keeps marks as the names of empty files in a directory, so that none
// can be half written.
type MarkDir string

var _ Marks = MarkDir("")

// separator is in no id, pod UID or volume name.
const separator = "_"

func (d MarkDir) path(m Mark) string {
	return filepath.Join(string(d), strings.Join([]string{m.ID, m.Owner.PodUID, m.Owner.Name}, separator))
}

// Has implements Marks.
func (d MarkDir) Has(m Mark) (bool, error) {
	_, err := os.Lstat(d.path(m))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking for the volume's mark: %w", err)
	}
	return true, nil
}

// Set implements Marks. When it returns, the mark is on the disk.
func (d MarkDir) Set(m Mark) error {
	if err := os.MkdirAll(string(d), 0o750); err != nil {
		return fmt.Errorf("making directory of marks: %w", err)
	}
	f, err := os.OpenFile(d.path(m), os.O_CREATE|os.O_WRONLY, 0o640)
	if err != nil {
		return fmt.Errorf("marking the volume: %w", err)
	}
	// The directory may be new: unless its parent is synced, a power loss removes it and
	// the mark with it. Syncing a directory that has not changed costs nothing.
	if err := errors.Join(f.Sync(), f.Close(), syncDir(string(d)), syncDir(filepath.Dir(string(d)))); err != nil {
		return fmt.Errorf("marking the volume: %w", err)
	}
	return nil
}

// Remove implements Marks.
func (d MarkDir) Remove(m Mark) error {
	err := os.Remove(d.path(m))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := errors.Join(err, syncDir(string(d))); err != nil {
		return fmt.Errorf("removing the volume's mark: %w", err)
	}
	return nil
}

// List implements Marks. A file that is no mark is not Berth's, and List skips it.
func (d MarkDir) List() ([]Mark, error) {
	entries, err := os.ReadDir(string(d))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listing marks: %w", err)
	}
	var marks []Mark
	for _, e := range entries {
		parts := strings.Split(e.Name(), separator)
		if len(parts) == 3 && strings.HasPrefix(parts[0], provision.InlinePrefix) {
			marks = append(marks, Mark{parts[0], provision.Inline{PodUID: parts[1], Name: parts[2]}})
		}
	}
	return marks, nil
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
