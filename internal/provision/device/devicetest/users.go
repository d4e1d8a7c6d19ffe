package devicetest

import (
	"fmt"
	"sync"
)

// Open opens a partition by its path, as a program does; the result closes it.
func (m *Machine) Open(path string) (closeDevice func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, part, ok := m.partition(path)
	if !ok {
		panic("there is no partition " + path)
	}
	p.open[part.Name]++
	return sync.OnceFunc(func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		p.open[part.Name]--
	})
}

// Mount holds a partition for itself, as a mount does; the result unmounts it.
func (m *Machine) Mount(path string) (unmount func()) {
	closeDevice := m.Open(path)
	m.mu.Lock()
	defer m.mu.Unlock()
	p, _, _ := m.partition(path)
	p.mounted++
	return sync.OnceFunc(func() {
		closeDevice()
		m.mu.Lock()
		defer m.mu.Unlock()
		p.mounted--
	})
}

// WriteDisk writes to a disk as others would.
func (m *Machine) WriteDisk(name string, offset int64, text string) {
	m.with(name, func(p *plugged) { p.Put([]byte(text), offset) })
	m.tell(name)
}

// WritePartition writes at the beginning of a partition, and ReadPartition reads it.
func (m *Machine) WritePartition(path, text string) {
	p, start := m.at(path)
	p.Put([]byte(text), start)
	m.tell(path[len("/dev/"):])
}

// ReadPartition reads the beginning of a partition.
func (m *Machine) ReadPartition(path string, bytes int) string {
	p, start := m.at(path)
	b := make([]byte, bytes)
	p.Get(b, start)
	return string(b)
}

func (m *Machine) at(path string) (*plugged, int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, part, ok := m.partition(path)
	if !ok {
		panic(fmt.Sprintf("there is no partition %s", path))
	}
	return p, part.Start
}

// Medium returns the medium of a disk.
func (m *Machine) Medium(name string) (medium *Medium) {
	m.with(name, func(p *plugged) { medium = p.Medium })
	return medium
}

// opened says whether any partition of a disk is open.
func (p *plugged) opened() bool {
	for _, n := range p.open {
		if n > 0 {
			return true
		}
	}
	return false
}
