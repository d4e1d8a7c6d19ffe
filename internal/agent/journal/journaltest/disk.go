// Package journaltest plays the disk that a journal is on.
package journaltest

import (
	"errors"
	"io/fs"
	"maps"
	"slices"
	"sync"

	"berth.dev/berth/internal/agent/journal"
)

// ErrCrash is returned from the effect that the process does not survive.
var ErrCrash = errors.New("the process has died")

// Disk is a directory in memory. What was written and not synced is lost with the power: a file's
// contents, or its name.
type Disk struct {
	mu sync.Mutex
	// files are what processes see, and names the names that were synced. An inode has the contents
	// that were.
	files, names map[string]*inode

	// Fault, if set, is asked before each effect, and its error is the effect's.
	Fault func(effect string) error
	// Lazy: Sync and SyncDir do nothing. It is a mistake to be found.
	Lazy bool
}

type inode struct{ text, synced []byte }

var _ journal.Files = (*Disk)(nil)

// New makes an empty disk.
func New() *Disk { return &Disk{files: map[string]*inode{}, names: map[string]*inode{}} }

// PowerOff loses what was not synced.
func (d *Disk) PowerOff() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.files = maps.Clone(d.names)
	for _, f := range d.files {
		f.text = slices.Clone(f.synced)
	}
}

func (d *Disk) effect(name string, f func() error) error {
	if d.Fault != nil {
		if err := d.Fault(name); err != nil {
			return err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return f()
}

// Read implements journal.Files.
func (d *Disk) Read(name string) (text []byte, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f, ok := d.files[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return slices.Clone(f.text), nil
}

// List implements journal.Files.
func (d *Disk) List() ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Sorted(maps.Keys(d.files)), nil
}

// Write implements journal.Files.
func (d *Disk) Write(name string, text []byte) error {
	return d.effect("write", func() error {
		f, ok := d.files[name]
		if !ok {
			f = &inode{}
			d.files[name] = f
		}
		f.text = slices.Clone(text)
		return nil
	})
}

// Sync implements journal.Files.
func (d *Disk) Sync(name string) error {
	return d.effect("sync", func() error {
		f, ok := d.files[name]
		if !ok {
			return fs.ErrNotExist
		}
		if !d.Lazy {
			f.synced = slices.Clone(f.text)
		}
		return nil
	})
}

// Rename implements journal.Files.
func (d *Disk) Rename(from, to string) error {
	return d.effect("rename", func() error {
		f, ok := d.files[from]
		if !ok {
			return fs.ErrNotExist
		}
		d.files[to] = f
		delete(d.files, from)
		return nil
	})
}

// Remove implements journal.Files.
func (d *Disk) Remove(name string) error {
	return d.effect("remove", func() error {
		delete(d.files, name)
		return nil
	})
}

// SyncDir implements journal.Files.
func (d *Disk) SyncDir() error {
	return d.effect("sync the directory", func() error {
		if !d.Lazy {
			d.names = maps.Clone(d.files)
		}
		return nil
	})
}

// Durable returns the disk as it is after a loss of power now. d stays as it is.
func (d *Disk) Durable() *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	after := New()
	for name, f := range d.names {
		i := &inode{text: slices.Clone(f.synced), synced: slices.Clone(f.synced)}
		after.files[name], after.names[name] = i, i
	}
	return after
}
