package devicetest

import (
	"sync"

	"berth.dev/berth/internal/provision/device"
	"berth.dev/berth/internal/provision/device/gpt"
)

const page = 4096

// Medium holds the data of a disk. Bytes that were never written are zeros.
type Medium struct {
	mu    sync.Mutex
	pages map[int64][]byte
}

// NewMedium returns an empty medium.
func NewMedium() *Medium { return &Medium{pages: map[int64][]byte{}} }

// Copy returns another medium with the same content.
func (m *Medium) Copy() *Medium {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := NewMedium()
	for n, b := range m.pages {
		c.pages[n] = append([]byte(nil), b...)
	}
	return c
}

// Get reads.
func (m *Medium) Get(b []byte, offset int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(b)
	for number, p := range m.pages { // there are few
		switch at := number*page - offset; {
		case at >= 0 && at < int64(len(b)):
			copy(b[at:], p)
		case at < 0 && at > -page:
			copy(b, p[-at:])
		}
	}
}

// Put writes.
func (m *Medium) Put(b []byte, offset int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(b) > 0 {
		number, at := offset/page, offset%page
		if m.pages[number] == nil {
			m.pages[number] = make([]byte, page)
		}
		n := copy(m.pages[number][at:], b)
		b, offset = b[n:], offset+int64(n)
	}
}

// Used says whether anything but zeros may be on it.
func (m *Medium) Used() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.pages {
		for _, b := range p {
			if b != 0 {
				return true
			}
		}
	}
	return false
}

// zero clears whole pages. All callers ask for whole pages.
func (m *Medium) zero(offset, length int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for number := range m.pages {
		if number*page >= offset && (number+1)*page <= offset+length {
			delete(m.pages, number)
		}
	}
}

// scan finds the partitions by the primary table or else the backup, as the kernel
// does.
func (p *plugged) scan() {
	i := gpt.Image{Geometry: p.Geometry, Head: make([]byte, 1<<20), Tail: make([]byte, 1<<20)}
	p.Get(i.Head, 0)
	p.Get(i.Tail, p.Size-1<<20)
	table := i.Primary()
	if !table.Valid {
		table = i.Backup()
	}
	p.Partitions = nil
	for n, part := range table.Partitions {
		p.Partitions = append(p.Partitions, device.Partition{
			Name: partitionName(p.Name, n+1), Number: n + 1,
			Start: part.First * p.Block, Length: (part.Last - part.First + 1) * p.Block,
		})
	}
}

func partitionName(disk string, number int) string {
	name := disk
	if last := disk[len(disk)-1]; last >= '0' && last <= '9' {
		name += "p"
	}
	return name + string(rune('0'+number))
}
