package writes

import (
	"fmt"
	"sort"
)

// Disk is what a writer needs of a disk.
type Disk interface {
	ReadAt(into []byte, at int64) (int, error)
	WriteAt(from []byte, at int64) (int, error)
	// Sync returns when everything that was written has reached the disk.
	Sync() error
}

// Log appends records to a disk.
type Log struct {
	disk  Disk
	slots int64
	last  Record
	sum   string
}

// Open finds the last record of a disk of a size, and begins the next term for a writer. The writer's
// Node, Boot and Pod go into each record.
func Open(disk Disk, size int64, writer Record) (*Log, error) {
	l := &Log{disk: disk, slots: size / Slot}
	var failed error
	// Slots are filled in order, so the first one without a record is found by halving.
	n := int64(sort.Search(int(l.slots), func(i int) bool {
		_, _, is, err := l.read(int64(i))
		if err != nil {
			failed = err
		}
		return is != whole
	}))
	if failed != nil {
		return nil, failed
	}
	if n > 0 {
		last, sum, _, err := l.read(n - 1)
		if err != nil {
			return nil, err
		}
		l.sum, writer.Sequence, writer.Term = sum, last.Sequence, last.Term
	}
	writer.Term++
	l.last = writer
	return l, nil
}

func (l *Log) read(slot int64) (Record, string, content, error) {
	raw := make([]byte, Slot)
	if _, err := l.disk.ReadAt(raw, slot*Slot); err != nil {
		return Record{}, "", damaged, fmt.Errorf("reading record %d: %w", slot+1, err)
	}
	r, sum, is := decode(raw)
	return r, sum, is, nil
}

// Append writes the next record and returns once it has reached the disk.
func (l *Log) Append() (Acknowledgement, error) {
	r := l.last
	r.Before, r.Sequence = l.sum, r.Sequence+1
	if r.Sequence > l.slots {
		return Acknowledgement{}, fmt.Errorf("the disk is full with %d records", l.slots)
	}
	slot, sum, err := r.Encode()
	if err != nil {
		return Acknowledgement{}, err
	}
	if _, err := l.disk.WriteAt(slot, (r.Sequence-1)*Slot); err != nil {
		return Acknowledgement{}, fmt.Errorf("writing record %d: %w", r.Sequence, err)
	}
	if err := l.disk.Sync(); err != nil {
		return Acknowledgement{}, fmt.Errorf("record %d did not reach the disk: %w", r.Sequence, err)
	}
	l.last, l.sum = r, sum
	return Acknowledgement{Sequence: r.Sequence, Term: r.Term, Sum: sum}, nil
}
