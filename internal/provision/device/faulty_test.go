package device_test

import (
	"errors"
	"io"
	"slices"
	"sync"
	"testing"

	"berth.dev/berth/internal/provision/device"
	"berth.dev/berth/internal/provision/device/devicetest"
	"berth.dev/berth/internal/provision/device/gpt"
)

var errFaulty = errors.New("input/output error")

// faulty is a machine on which something does not work, or something happens.
type faulty struct {
	*devicetest.Machine
	// mu guards the counts and the functions that are called once: disks are read at the same
	// time.
	mu sync.Mutex
	// unlisted is how often the kernel does not tell its disks, and hidden a disk that it leaves
	// out.
	unlisted int
	hidden   string
	// unfound is how often it does not find the disk that it is asked for.
	unfound int
	// deaf says that the kernel does not read the partition table of a disk again when its writer
	// closes it.
	deaf bool
	// fault, if set, says why an operation on a disk that is held fails.
	fault func(what) error
	// beforeRead, beforeKeep and afterHold are called once: before a disk is read, before a
	// partition is kept open, and when a disk that was held is not held any more.
	beforeRead, beforeKeep, afterHold func()
}

// what is an operation on a disk that is held.
type what int

const (
	read what = iota
	written
	partitioned
	erased
)

// once calls a function if it was not called yet.
func (f *faulty) once(what *func()) {
	f.mu.Lock()
	happens := *what
	*what = nil
	f.mu.Unlock()
	if happens != nil {
		happens()
	}
}

// left says whether a fault happens this time, and counts it.
func (f *faulty) left(times *int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	*times--
	return *times >= 0
}

func (f *faulty) List() ([]device.Disk, error) {
	if f.left(&f.unlisted) {
		return nil, errFaulty
	}
	list, err := f.Machine.List()
	return slices.DeleteFunc(list, func(d device.Disk) bool { return d.Name == f.hidden }), err
}

func (f *faulty) Find(name string) (device.Disk, bool) {
	if f.left(&f.unfound) {
		return device.Disk{}, false
	}
	return f.Machine.Find(name)
}

func (f *faulty) Read(name string) (device.Reader, error) {
	f.once(&f.beforeRead)
	return f.Machine.Read(name)
}

func (f *faulty) Keep(path string) (io.Closer, error) {
	f.once(&f.beforeKeep)
	return f.Machine.Keep(path)
}

func (f *faulty) Hold(name string) (device.Holder, error) {
	h, err := f.Machine.Hold(name)
	if err != nil {
		return nil, err
	}
	return faultyHolder{h, f, name}, nil
}

type faultyHolder struct {
	device.Holder
	on   *faulty
	name string
}

func (h faultyHolder) ReadAt(b []byte, offset int64) (int, error) {
	if err := h.on.fails(read); err != nil {
		return 0, err
	}
	return h.Holder.ReadAt(b, offset)
}

func (h faultyHolder) WriteAt(b []byte, offset int64) (int, error) {
	if err := h.on.fails(written); err != nil {
		return 0, err
	}
	return h.Holder.WriteAt(b, offset)
}

func (h faultyHolder) AddPartition(p device.Partition) error {
	if err := h.on.fails(partitioned); err != nil {
		return err
	}
	return h.Holder.AddPartition(p)
}

func (h faultyHolder) RemovePartition(number int) error {
	if err := h.on.fails(partitioned); err != nil {
		return err
	}
	return h.Holder.RemovePartition(number)
}

func (h faultyHolder) Discard(offset, length int64) error {
	if err := h.on.fails(erased); err != nil {
		return err
	}
	return h.Holder.Discard(offset, length)
}

func (h faultyHolder) Overwrite(offset, length int64) error {
	if err := h.on.fails(erased); err != nil {
		return err
	}
	return h.Holder.Overwrite(offset, length)
}

func (f *faulty) fails(w what) error {
	if f.fault == nil {
		return nil
	}
	return f.fault(w)
}

func (h faultyHolder) Close() error {
	before, known := h.on.Machine.Find(h.name)
	err := h.Holder.Close()
	if h.on.deaf && known {
		h.on.partitions(h.name, before.Partitions)
	}
	h.on.once(&h.on.afterHold)
	return err
}

// partitions makes the kernel know just these partitions of a disk.
func (f *faulty) partitions(disk string, known []device.Partition) {
	f.Edit(disk, func(d *device.Disk) { d.Partitions = known })
}

// forget makes the kernel forget a disk's partitions.
func (f *faulty) forget(disk string) { f.partitions(disk, nil) }

// deafNode is a node that does not watch its disks, on a machine whose kernel is deaf, with a volume
// on its first disk.
func deafNode(t *testing.T) (*faulty, *node) {
	t.Helper()
	f := &faulty{Machine: disks(), deaf: true}
	n := over(t, f.Machine, f)
	n.create(t, id, pool("naa.a"))
	return f, n
}

// again returns a node with a process that has just begun, on the same machine.
func (f *faulty) again(t *testing.T) *node {
	t.Helper()
	return over(t, f.Machine, f)
}

// lose damages a block of a volume's table, of the backup or of the primary.
func lose(m *devicetest.Machine, disk string, backup bool) {
	at := int64(512)
	if backup {
		at = diskSize - 512
	}
	m.Medium(disk).Put(make([]byte, 512), at)
}

// theirs returns the writes of a table of others, its backup first.
func theirs() []gpt.Write {
	g := gpt.Geometry{Size: diskSize, Block: 512}
	return g.Writes(gpt.Partition{Type: gpt.GUID{1}, ID: gpt.GUID{2}, First: 4096, Last: 5000, Name: "theirs"})
}

func put(m *devicetest.Machine, disk string, writes []gpt.Write) {
	for _, w := range writes {
		m.Medium(disk).Put(w.Data, w.Offset)
	}
}

// copied puts a copy of a volume's disk in place of another.
func copied(m *devicetest.Machine) {
	m.Pull("nvme0n1")
	m.Plug(devicetest.Disk("nvme0n1", "eui.c", diskSize), m.Medium("sda").Copy())
}

// overwritten puts the content of one disk on another of its size, without an event.
func overwritten(m *devicetest.Machine, disk, with string) {
	b := make([]byte, diskSize)
	m.Medium(with).Get(b, 0)
	m.Medium(disk).Put(b, 0)
}

// always returns a fault of all operations of one kind.
func always(of what) func(what) error {
	return func(w what) error {
		if w == of {
			return errFaulty
		}
		return nil
	}
}
