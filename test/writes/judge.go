package writes

import (
	"errors"
	"fmt"
	"io"
)

// Verdict is what a disk shows.
type Verdict struct {
	// Records and Terms are how many the disk has.
	Records, Terms int64
	// Faults are what must never be, in the order of the records. There are none on a sound disk.
	Faults []string
}

// maxFaults is how many faults are listed: one lost write may bring thousands of others with it.
const maxFaults = 20

// Judge reads a disk of a size from its beginning to its end, and compares it with what was acknowledged.
func Judge(disk io.ReaderAt, size int64, acknowledged []Acknowledgement) (Verdict, error) {
	j := judge{sums: map[int64]string{}}
	raw := make([]byte, Slot)
	for slot := range size / Slot {
		if n, err := disk.ReadAt(raw, slot*Slot); err != nil && (n < Slot || !errors.Is(err, io.EOF)) {
			return Verdict{}, fmt.Errorf("reading record %d: %w", slot+1, err)
		}
		r, sum, is := decode(raw)
		switch is {
		case empty:
			j.gap = true
		case damaged:
			j.fault("record %d is damaged", slot+1)
		case whole:
			j.look(slot+1, &r, sum)
		}
	}
	for _, a := range acknowledged {
		switch sum, there := j.sums[a.Sequence]; {
		case !there:
			j.fault("record %d was acknowledged in term %d, and is lost", a.Sequence, a.Term)
		case sum != a.Sum:
			j.fault("record %d was acknowledged in term %d, and another one is in its place", a.Sequence, a.Term)
		}
	}
	return Verdict{Records: int64(len(j.sums)), Terms: j.last.Term, Faults: j.faults}, nil
}

type judge struct {
	sums map[int64]string
	// last is the record before, lastSum its checksum.
	last    Record
	lastSum string
	// gap: a slot before this one is empty.
	gap    bool
	faults []string
}

func (j *judge) fault(format string, args ...any) {
	if len(j.faults) < maxFaults {
		j.faults = append(j.faults, fmt.Sprintf(format, args...))
	}
}

// look takes the record of the next slot.
func (j *judge) look(slot int64, r *Record, sum string) {
	j.sums[slot] = sum
	if r.Sequence != slot {
		j.fault("record %d is in the place of record %d", r.Sequence, slot)
	}
	if j.gap {
		j.fault("record %d is there, and one before it is missing", slot)
		j.gap = false
	}
	switch {
	case r.Term < j.last.Term:
		j.fault("record %d is of term %d and comes after term %d: an old writer wrote after a new one", slot, r.Term, j.last.Term)
	case r.Before != j.lastSum:
		j.fault("record %d follows another record than the one before it, which was replaced", slot)
	case r.Term == j.last.Term && (r.Node != j.last.Node || r.Boot != j.last.Boot || r.Pod != j.last.Pod):
		j.fault("record %d is of term %d, which has two writers: pod %s on %s, and pod %s on %s",
			slot, r.Term, j.last.Pod, j.last.Node, r.Pod, r.Node)
	}
	j.last, j.lastSum = *r, sum
}
