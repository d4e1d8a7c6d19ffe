package writes

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// memory is a disk.
type memory struct{ bytes []byte }

func (m *memory) ReadAt(into []byte, at int64) (int, error)  { return copy(into, m.bytes[at:]), nil }
func (m *memory) WriteAt(from []byte, at int64) (int, error) { return copy(m.bytes[at:], from), nil }
func (m *memory) Sync() error                                { return nil }

// story is a disk of sixteen slots on which writers have written, one after the other.
type story struct {
	t            *testing.T
	disk         *memory
	acknowledged []Acknowledgement
}

func begin(t *testing.T) *story {
	return &story{t: t, disk: &memory{make([]byte, 16*Slot)}}
}

// opens is a writer on a node that takes the disk.
func (s *story) opens(node string) *Log {
	l, err := Open(s.disk, int64(len(s.disk.bytes)), Record{Node: node, Boot: "boot of " + node, Pod: "pod on " + node})
	if err != nil {
		s.t.Fatal(err)
	}
	return l
}

// appends lets a writer write, and acknowledge.
func (s *story) appends(l *Log, n int) {
	for range n {
		a, err := l.Append()
		if err != nil {
			s.t.Fatal(err)
		}
		s.acknowledged = append(s.acknowledged, a)
	}
}

func (s *story) slot(sequence int) []byte { return s.disk.bytes[(sequence-1)*Slot : sequence*Slot] }

// takeover is a sound story: a writer, and the next one.
func takeover(t *testing.T) (s *story, first, second *Log) {
	s = begin(t)
	first = s.opens("node1")
	s.appends(first, 4)
	second = s.opens("node2")
	s.appends(second, 4)
	return s, first, second
}

func TestADiskThatLostNothingIsClean(t *testing.T) {
	s, _, _ := takeover(t)
	s.appends(s.opens("node1"), 2)
	v, err := Judge(s.disk, int64(len(s.disk.bytes)), s.acknowledged)
	if err != nil || len(v.Faults) > 0 || v.Records != 10 || v.Terms != 3 {
		t.Errorf("got %+v, %v", v, err)
	}
}

func TestEachHarmToADiskIsFound(t *testing.T) {
	for name, tc := range map[string]struct {
		harm func(s *story, first, second *Log)
		want string
	}{
		"an old writer goes on over a new one's records": {
			func(_ *story, first, _ *Log) { _, _ = first.Append() }, "record 6 follows another record"},
		"an old writer writes last": {
			func(_ *story, first, _ *Log) {
				first.last.Sequence = 8
				_, _ = first.Append()
			}, "an old writer wrote after a new one"},
		"an old writer replaces the last record": {
			func(_ *story, first, _ *Log) {
				first.last.Sequence = 7
				_, _ = first.Append()
			}, "record 8 is of term 1"},
		"the last acknowledged records are lost": {
			func(s *story, _, _ *Log) { clear(s.slot(8)) }, "record 8 was acknowledged in term 2, and is lost"},
		"a record in the middle is lost": {
			func(s *story, _, _ *Log) { clear(s.slot(5)) }, "record 6 is there, and one before it is missing"},
		"a bit of a record turned": {
			func(s *story, _, _ *Log) { s.slot(3)[100] ^= 1 }, "record 3 is damaged"},
		"bytes behind a record are not its own": {
			func(s *story, _, _ *Log) { s.slot(3)[2000] = 1 }, "record 3 is damaged"},
		"a record is in another one's place": {
			func(s *story, _, _ *Log) { copy(s.slot(9), s.slot(8)) }, "record 8 is in the place of record 9"},
		"a new writer saw an older disk": {
			func(s *story, _, _ *Log) {
				later := slices.Clone(s.disk.bytes)
				clear(s.disk.bytes[2*Slot:])
				stale := s.opens("node3")
				s.disk.bytes = later
				s.appends(stale, 6)
			}, "record 3 was acknowledged in term 1, and another one is in its place"},
		"two writers have one term": {
			func(s *story, _, second *Log) {
				second.last.Node = "node3"
				s.appends(second, 1)
			}, "which has two writers"},
	} {
		t.Run(name, func(t *testing.T) {
			s, first, second := takeover(t)
			tc.harm(s, first, second)
			v, err := Judge(s.disk, int64(len(s.disk.bytes)), s.acknowledged)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(v.Faults, func(f string) bool { return strings.Contains(f, tc.want) }) {
				t.Errorf("no fault says %q: %q", tc.want, v.Faults)
			}
		})
	}
}

func TestAFullDiskRefusesTheNextRecord(t *testing.T) {
	s := begin(t)
	l := s.opens("node1")
	s.appends(l, 16)
	if _, err := l.Append(); err == nil {
		t.Error("it was written beyond the end")
	}
	if again := s.opens("node2"); again.last.Sequence != 16 || again.last.Term != 2 {
		t.Errorf("the next writer begins with %+v", again.last)
	}
}

func TestAnAcknowledgementIsReadOnlyAsAWhole(t *testing.T) {
	a := Acknowledgement{Sequence: 12, Term: 3, Sum: strings.Repeat("ab", 16)}
	for line, want := range map[string]bool{
		a.String():                       true,
		a.String() + "\r":                true,
		a.String()[:30]:                  false,
		"[ 12.3] a driver " + a.String(): false,
		a.String() + " and more":         false,
		fmt.Sprintf("%s x 3 ab", mark):   false,
		"":                               false,
	} {
		got, ok := ParseAcknowledgement(line)
		if ok != want || ok && got != a {
			t.Errorf("%q: %+v, %v", line, got, ok)
		}
	}
}
