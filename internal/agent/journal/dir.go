package journal

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Dir keeps the files in a directory of its own, which it makes.
type Dir string

var _ Files = Dir("")

func (d Dir) path(name string) string { return filepath.Join(string(d), name) }

// Read implements Files.
func (d Dir) Read(name string) ([]byte, error) { return os.ReadFile(d.path(name)) }

// List implements Files.
func (d Dir) List() ([]string, error) {
	entries, err := os.ReadDir(string(d))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

// Write implements Files.
func (d Dir) Write(name string, text []byte) error {
	if err := os.MkdirAll(string(d), 0o700); err != nil {
		return err
	}
	return os.WriteFile(d.path(name), text, 0o600)
}

// Sync implements Files.
func (d Dir) Sync(name string) error { return sync(d.path(name)) }

// Rename implements Files.
func (d Dir) Rename(from, to string) error { return os.Rename(d.path(from), d.path(to)) }

// Remove implements Files.
func (d Dir) Remove(name string) error {
	if err := os.Remove(d.path(name)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// SyncDir implements Files. The directory may be new: unless its parent is synced, too, a loss of
// power removes it.
func (d Dir) SyncDir() error {
	return errors.Join(sync(string(d)), sync(filepath.Dir(string(d))))
}

func sync(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
