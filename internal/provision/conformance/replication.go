package conformance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
)

// ReplicaNode is a machine with one empty pool whose volumes can be copies.
type ReplicaNode struct {
	Pool provision.PoolRef
	// Filesystem is set in the request for each volume: a tree, or empty.
	Filesystem string
	// Start ends the process that runs, if one does, and starts another.
	Start func() provision.Provisioner
	// Crash has the next process end at an effect: the odd numbers are just before one, the even
	// numbers just after it; it never ends at 0. ended says whether it did.
	Crash func(at int) (ended func() bool)
	// Every says that only each such effect is tried: those of real disks take minutes. 0 is each.
	Every int
	// Large is how many bytes a text must have for its stream to be cut in the middle; 0 if any is
	// long enough.
	Large int
	// Write writes a text to the head of a volume that may be written, and Read reads as much.
	Write func(v provision.Volume, text string)
	Read  func(v provision.Volume, bytes int) string
	// Pass lets the node's clock advance.
	Pass func(time.Duration)
	// Now is the node's clock.
	Now func() time.Time
	// Idle fails the test if anything but the copies' data is left in the pool.
	Idle func()
}

// RunReplication runs the suite for provisioners whose volumes can have copies on several nodes. start
// returns two nodes.
func RunReplication(t *testing.T, start func(*testing.T) [2]ReplicaNode) {
	for name, test := range map[string]func(*pair){
		"a volume that nothing was done to is no copy":                      noCopyYet,
		"a mark stays, and what was opened and closed never falls":          marksStay,
		"a point is taken once, and only a newer one after it":              pointsGrow,
		"a new write makes the head dirty until the next point":             headIsDirty,
		"a stream in full carries the data, the record and the promise":     carriesInFull,
		"an increment carries the difference":                               carriesIncrement,
		"a copy cannot be mounted before it is made writable":               readOnlyUntilWritable,
		"a copy is not writable in an epoch that it did not open":           writableOnlyWhenOpened,
		"a stream that does not fit the copy is refused":                    refusesWrongStreams,
		"a stream to a copy that holds other data is refused":               refusesOverData,
		"a damaged stream changes nothing":                                  refusesDamage,
		"an epoch that begins meanwhile does not undo a stream":             outlivesItsEpoch,
		"a stream that was cut off leaves the copy as it was":               survivesCuts,
		"what was received half can be removed":                             aborts,
		"a stream that comes twice is refused the second time":              refusesReplay,
		"a full stream keeps the old copy until the new one is whole":       replacesWhole,
		"a branch is kept when the copy is rolled back and goes on":         keepsBranches,
		"nothing is rolled back that is in no branch":                       rollsBackNothingUnkept,
		"points that are needed are not dropped":                            dropsOnlyUnneeded,
		"a hold ends by itself":                                             holdsEnd,
		"a CSI snapshot is a point that goes only by itself":                snapshotsStay,
		"a CSI snapshot survives a stream in full":                          snapshotsSurviveFull,
		"roles change and the increments go the other way":                  rolesChange,
		"deleting a volume removes all of its points":                       deletesCopies,
		"a receiver that is superseded while it receives takes no point":    promisesOvertake,
		"a sender whose receiver goes away stops, and keeps nothing":        stopsSending,
		"a caller that gives up ends a stream":                              givesUpStreams,
		"a process may end at any effect on either side of a stream's life": crashesAnywhere,
	} {
		t.Run(name, func(t *testing.T) {
			p := &pair{t: t, nodes: start(t)}
			p.restart()
			test(p)
		})
	}
}

// pair is two nodes, of which one sends what the other receives.
type pair struct {
	t     *testing.T
	nodes [2]ReplicaNode
	a, b  side
}

// side is one node of a pair with its process.
type side struct {
	ReplicaNode
	t *testing.T
	provision.Provisioner
	r provision.Replicator
}

func (p *pair) restart() {
	p.t.Helper()
	for i, s := range []*side{&p.a, &p.b} {
		s.t, s.ReplicaNode = p.t, p.nodes[i]
		s.Provisioner = s.Start()
		able, ok := s.Provisioner.(provision.Replicating)
		if !ok {
			p.t.Fatalf("a %T has no copies", s.Provisioner)
		}
		s.r = able.Replicator()
	}
}

// The epochs and points of the tests. Epoch two begins at point 2 of epoch one.
var (
	one   = lineage.Epoch{Number: 1, ID: "one"}
	two   = lineage.Epoch{Number: 2, ID: "two"}
	three = lineage.Epoch{Number: 3, ID: "three"}
)

func point(e lineage.Epoch, seq uint64) lineage.Point { return lineage.Point{Epoch: e, Seq: seq} }

func promise(branches ...lineage.Branch) ownership.Promise {
	var l lineage.Lineage
	for _, b := range branches {
		l = l.Extend(b)
	}
	return ownership.Promise{Epoch: l.Head(), Primary: "node-1", Boot: "boot-1", Lineage: l}
}

var (
	promiseOne   = promise(lineage.Branch{Epoch: one})
	promiseTwo   = promise(lineage.Branch{Epoch: one}, lineage.Branch{Epoch: two, From: point(one, 2)})
	promiseThree = promise(lineage.Branch{Epoch: one}, lineage.Branch{Epoch: two, From: point(one, 2)}, lineage.Branch{Epoch: three, From: point(two, 3)})
)

const copyUnits = 16

func (s side) size() int64 { return copyUnits * (4 << 20) }

// made makes the volume, blank.
func (s side) made() side {
	s.t.Helper()
	must(s.t, "creating", s.make())
	return s
}

func (s side) make() error {
	_, err := s.Create(context.WithoutCancel(s.t.Context()), provision.CreateRequest{ID: id(1), Pool: s.Pool, Size: s.size(), Tree: s.Filesystem})
	return err
}

// primary opens the copy in an epoch and makes it writable.
func (s side) primary(p ownership.Promise) provision.Volume {
	s.t.Helper()
	must(s.t, "marking", s.r.Mark(s.t.Context(), id(1), provision.Mark{Promise: p, Opened: p.Epoch}))
	v, err := s.r.Writable(s.t.Context(), id(1))
	must(s.t, "making writable", err)
	if v.Problem != "" {
		s.t.Fatalf("the writable volume has a problem: %s", v.Problem)
	}
	must(s.t, "formatting", format(&s)()) // as a node does before it mounts a volume
	return v
}

// closes gives an epoch up.
func (s side) closes(e lineage.Epoch) {
	s.t.Helper()
	must(s.t, "closing", s.r.Mark(s.t.Context(), id(1), provision.Mark{Closed: e}))
}

func (s side) write(text string) {
	s.t.Helper()
	v, err := s.Get(s.t.Context(), id(1))
	must(s.t, "getting", err)
	s.Write(v, text)
}

func (s side) holds(text string) {
	s.t.Helper()
	v, err := s.Get(s.t.Context(), id(1))
	must(s.t, "getting", err)
	if got := s.Read(v, len(text)); got != text {
		s.t.Errorf("the volume holds %q, want %q", got, text)
	}
}

func (s side) take(p lineage.Point) {
	s.t.Helper()
	must(s.t, "taking a point", s.r.Snapshot(s.t.Context(), provision.PointRequest{Volume: id(1), Point: p}))
}

func (s side) state() provision.Replica {
	s.t.Helper()
	state, err := s.r.State(s.t.Context(), id(1))
	must(s.t, "asking for the state", err)
	return state
}

// has fails unless the copy holds exactly some points.
func (s side) has(points ...lineage.Point) {
	s.t.Helper()
	if got := s.state().Points; fmt.Sprint(got) != fmt.Sprint(points) {
		s.t.Errorf("the copy holds %v, want %v", got, points)
	}
}

// stream returns the header and the bytes of a stream.
func (s side) stream(base, target lineage.Point) (provision.StreamHeader, []byte) {
	s.t.Helper()
	h, stream, err := s.sent(provision.SendRequest{Volume: id(1), Base: base, Target: target})
	must(s.t, "sending", err)
	return h, stream
}

func (s side) sent(q provision.SendRequest) (provision.StreamHeader, []byte, error) {
	sent, err := Send(context.WithoutCancel(s.t.Context()), s.r, q)
	return sent.StreamHeader, sent.Bytes, err
}

// receive feeds a stream to the copy.
func (s side) receive(h provision.StreamHeader, bytes []byte) error {
	return Receive(context.WithoutCancel(s.t.Context()), s.r, Stream{StreamHeader: h, Bytes: bytes})
}

// long is a text whose stream can be cut in the middle.
func (p *pair) long() string { return strings.Repeat("third", max(20, p.a.Large/5)) }

// copied has node b filled by node a: both hold points 1 and 2 of epoch one.
func (p *pair) copied() {
	p.t.Helper()
	p.a.made()
	p.b.made()
	p.a.primary(promiseOne)
	p.a.write("first")
	p.a.take(point(one, 1))
	h, stream := p.a.stream(lineage.Point{}, point(one, 1))
	must(p.t, "receiving in full", p.b.receive(h, stream))
	p.a.write("second")
	p.a.take(point(one, 2))
	h, stream = p.a.stream(point(one, 1), point(one, 2))
	must(p.t, "receiving an increment", p.b.receive(h, stream))
}

func must(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// wants fails unless an error is of a class.
func wants(t *testing.T, what string, err, class error) {
	t.Helper()
	if !errors.Is(err, class) {
		t.Errorf("%s: %v, want %q", what, err, class)
	}
}
