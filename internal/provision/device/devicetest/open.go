package devicetest

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"berth.dev/berth/internal/provision/device"
)

// file is a disk that is open.
type file struct {
	machine  *Machine
	disk     *plugged
	writable bool
	once     sync.Once
}

// Read implements device.Disks.
func (m *Machine) Read(name string) (device.Reader, error) { return m.open(name, false) }

// Hold implements device.Disks.
func (m *Machine) Hold(name string) (device.Holder, error) {
	m.mu.Lock()
	before := m.before
	m.before = nil
	m.mu.Unlock()
	if before != nil {
		before()
	}
	f, err := m.open(name, true)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (m *Machine) open(name string, hold bool) (*file, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.disks[name]
	switch {
	case p == nil:
		return nil, fmt.Errorf("opening %s: no such device", name)
	case p.fault != nil:
		return nil, p.fault
	case hold && (p.held || p.mounted > 0 || len(p.Holders) > 0):
		return nil, device.ErrBusy
	}
	p.held = p.held || hold
	return &file{machine: m, disk: p, writable: hold}, nil
}

// Close implements io.Closer. It tells the watchers that a writer is done. udev then makes
// the kernel find the partitions anew, which the kernel does unless one is open.
func (f *file) Close() error {
	f.once.Do(func() {
		if !f.writable {
			return
		}
		f.machine.mu.Lock()
		f.disk.held = false
		if f.disk.fault == nil && !f.disk.opened() {
			f.disk.scan()
		}
		f.machine.mu.Unlock()
		f.machine.tell(f.disk.Name)
	})
	return nil
}

// ReadAt implements io.ReaderAt.
func (f *file) ReadAt(b []byte, offset int64) (int, error) {
	f.machine.mu.Lock()
	fault, hang := f.disk.fault, f.disk.hang
	f.machine.mu.Unlock()
	if hang != nil {
		<-hang
	}
	if fault != nil {
		return 0, fault
	}
	if offset < 0 || offset+int64(len(b)) > f.disk.Size {
		return 0, io.EOF
	}
	f.disk.Get(b, offset)
	return len(b), nil
}

// change makes an effect, unless the process or the disk is dead.
func (f *file) change(do func(p *plugged) error) error {
	f.machine.mu.Lock()
	defer f.machine.mu.Unlock()
	if !f.writable {
		return errors.New("the disk is open for reading")
	}
	if f.disk.fault != nil {
		return f.disk.fault
	}
	if err := f.machine.effect(); err != nil {
		return err
	}
	return do(f.disk)
}

// WriteAt implements io.WriterAt.
func (f *file) WriteAt(b []byte, offset int64) (int, error) {
	return len(b), f.change(func(p *plugged) error {
		if int64(len(b)) != p.Block || offset%p.Block != 0 || offset < 0 || offset >= p.Size {
			return fmt.Errorf("writing %d bytes at %d: that is not a block", len(b), offset)
		}
		p.Put(b, offset)
		return nil
	})
}

// Discard implements device.Holder. It overwrites the range, or returns ErrUnsupported for a
// plain disk.
func (f *file) Discard(offset, length int64) error {
	f.machine.mu.Lock()
	plain := f.disk.plain
	f.machine.mu.Unlock()
	if plain {
		return errors.ErrUnsupported
	}
	return f.Overwrite(offset, length)
}

// Overwrite implements device.Holder.
func (f *file) Overwrite(offset, length int64) error {
	return f.change(func(p *plugged) error {
		if offset < 0 || length <= 0 || offset+length > p.Size {
			return fmt.Errorf("overwriting %d bytes at %d: out of range", length, offset)
		}
		if !p.lies {
			p.zero(offset, length)
		}
		return nil
	})
}

// AddPartition implements device.Holder.
func (f *file) AddPartition(add device.Partition) error {
	err := f.change(func(p *plugged) error {
		for _, other := range p.Partitions {
			if other.Number == add.Number || add.Start < other.Start+other.Length && other.Start < add.Start+add.Length {
				return device.ErrBusy
			}
		}
		p.Partitions = append(p.Partitions, add)
		return nil
	})
	f.machine.tell(add.Name)
	return err
}

// RemovePartition implements device.Holder.
func (f *file) RemovePartition(number int) error {
	var name string
	err := f.change(func(p *plugged) error {
		i := slices.IndexFunc(p.Partitions, func(part device.Partition) bool { return part.Number == number })
		if i < 0 {
			return nil
		}
		name = p.Partitions[i].Name
		if p.open[name] > 0 {
			return device.ErrBusy
		}
		p.Partitions = slices.Delete(p.Partitions, i, i+1)
		return nil
	})
	f.machine.tell(name)
	return err
}
