package replica_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/replica"
)

var (
	one = lineage.Epoch{Number: 1, ID: "one"}
	now = time.Unix(1e9, 0).UTC()
)

func at(seq uint64) lineage.Point { return lineage.Point{Epoch: one, Seq: seq} }

func sample() replica.Record {
	return replica.Record{
		Exists:  true,
		Promise: ownership.Promise{Epoch: one, Primary: "n1", Boot: "b1", Lineage: lineage.Lineage{{Epoch: one}}, Losses: []ownership.Loss{{Epoch: one, Kept: at(1), Known: at(2)}}},
		Opened:  one, Closed: one,
		Points:    []replica.Point{{Point: at(1), Place: 1}},
		Branches:  []replica.Branch{{KeptBranch: provision.KeptBranch{Tip: at(2), From: at(1)}, Place: 2, Snapshot: true}},
		Preserved: at(2),
		Holds:     []ownership.Hold{{For: "n2", Point: at(1), Until: now}},
		Snapshots: map[string]lineage.Point{"snap-1": at(1)},
		Fate:      provision.Fate{Condemned: true, DestroyAt: now},
		Live:      true,
		Receiving: &replica.Receiving{Base: at(1), Target: at(3), Epoch: one, Size: 4, Place: 3},
		Last:      3,
	}
}

// written is the sample as it is beside the data. If this test fails, records that were written by
// earlier versions cannot be read any more: read both forms then.
const written = `{"Promise":{"Epoch":{"Number":1,"ID":"one"},"Primary":"n1","Boot":"b1","Lineage":[{"Epoch":{"Number":1,"ID":"one"},"From":{"Epoch":{"Number":0,"ID":""},"Seq":0}}],"Losses":[{"Epoch":{"Number":1,"ID":"one"},"Kept":{"Epoch":{"Number":1,"ID":"one"},"Seq":1},"Known":{"Epoch":{"Number":1,"ID":"one"},"Seq":2}}]},"Opened":{"Number":1,"ID":"one"},"Closed":{"Number":1,"ID":"one"},"Points":[{"Epoch":{"Number":1,"ID":"one"},"Seq":1,"Place":1}],"Branches":[{"Tip":{"Epoch":{"Number":1,"ID":"one"},"Seq":2},"From":{"Epoch":{"Number":1,"ID":"one"},"Seq":1},"Place":2,"Snapshot":true}],"Preserved":{"Epoch":{"Number":1,"ID":"one"},"Seq":2},"Holds":[{"For":"n2","Point":{"Epoch":{"Number":1,"ID":"one"},"Seq":1},"Until":"2001-09-09T01:46:40Z"}],"Snapshots":{"snap-1":{"Epoch":{"Number":1,"ID":"one"},"Seq":1}},"Fate":{"Condemned":true,"Quarantined":false,"DestroyAt":"2001-09-09T01:46:40Z"},"Live":true,"Receiving":{"Base":{"Epoch":{"Number":1,"ID":"one"},"Seq":1},"Target":{"Epoch":{"Number":1,"ID":"one"},"Seq":3},"Epoch":{"Number":1,"ID":"one"},"Size":4,"Place":3},"Last":3}`

func TestTheFormOfARecordBesideTheDataStays(t *testing.T) {
	text, err := sample().Encode()
	if err != nil || string(text) != written {
		t.Errorf("it is written as %s, %v", text, err)
	}
	got, err := replica.Decode([]byte(written))
	if diff := cmp.Diff(sample(), got, cmpopts.IgnoreUnexported(replica.Record{})); diff != "" || err != nil {
		t.Errorf("it is read otherwise (-want +got): %v\n%s", err, diff)
	}
}

func TestFieldsOfANewerVersionSurviveAChange(t *testing.T) {
	r, err := replica.Decode([]byte(strings.Replace(written, `"Last":3`, `"Last":3,"Later":{"x":[1]}`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	r, err = r.Mark(provision.Mark{Closed: lineage.Epoch{Number: 2, ID: "two"}}, now)
	if err != nil {
		t.Fatal(err)
	}
	text, err := r.Encode()
	if err != nil || !strings.Contains(string(text), `"Later":{"x":[1]}`) || !strings.Contains(string(text), `"two"`) {
		t.Errorf("it is written as %s, %v", text, err)
	}
}

// A field that is left out when it is empty must not come back.
func TestAFieldThatIsEmptyIsNotWrittenAsItWasRead(t *testing.T) {
	r, err := replica.Decode([]byte(strings.Replace(written, `"Last":3`, `"Last":3,"Later":1`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	text, err := r.Abort(now).Encode()
	if err != nil || strings.Contains(string(text), "Receiving") || strings.Contains(string(text), "Holds") || !strings.Contains(string(text), `"Later":1`) {
		t.Errorf("it is written as %s, %v", text, err)
	}
}

func TestADamagedRecordIsNoCopyThatMayBeTouched(t *testing.T) {
	for _, text := range []string{"x", written[:100], `[]`, `{"Points":1}`} {
		if _, err := replica.Decode([]byte(text)); !errors.Is(err, provision.ErrUnavailable) {
			t.Errorf("%.20s: %v", text, err)
		}
	}
	if r, err := replica.Decode(nil); err != nil || r.Exists {
		t.Errorf("no record: %+v, %v", r, err)
	}
}

func TestALongRecordIsPackedAndReadAsItWas(t *testing.T) {
	for points, packed := range map[int]bool{200: false, 400: true} {
		r := copyOf(many(points)...)
		text, err := r.Encode()
		if err != nil || len(text) > 15<<10 || (text[0] != '{') != packed {
			t.Fatalf("%d points: %d bytes, %v", points, len(text), err)
		}
		got, err := replica.Decode(text)
		if diff := cmp.Diff(r, got, cmpopts.IgnoreUnexported(replica.Record{})); diff != "" || err != nil {
			t.Errorf("%d points: %v (-want +got):\n%s", points, err, diff)
		}
		if _, err := replica.Decode(text[:len(text)/2]); !errors.Is(err, provision.ErrUnavailable) {
			t.Errorf("half of the record of %d points: %v", points, err)
		}
	}
}

func TestARecordThatIsTooLongIsRefused(t *testing.T) {
	if _, err := with(with(sample(), fullOfNames), fullOfBranches).Encode(); !errors.Is(err, provision.ErrNoSpace) {
		t.Errorf("got %v", err)
	}
}

// A node must always be able to promise and to give up, and the last writes of a pod must become a point, however many
// branches are kept. The names are as long as the API allows, or as they are.
func TestARecordAlwaysHasRoomForPointsHoldsAndAPromise(t *testing.T) {
	for name, length := range map[string]int{"long names": 64, "real names": 36} {
		t.Run(name, func(t *testing.T) {
			epoch := func(n uint64) lineage.Epoch { return lineage.Epoch{Number: 1<<40 + n, ID: hash(n)[:length]} }
			node := func(n uint64) string { return strings.Repeat(hash(n)[:length], 4)[:3*length+length/2] }
			r := replica.Record{Exists: true, Live: true, Opened: epoch(1)}
			check := func(next replica.Record, err error) {
				t.Helper()
				if err != nil {
					t.Fatalf("%d points, %d branches, %d holds: %v", len(r.Points), len(r.Branches), len(r.Holds), err)
				}
				r = next
			}
			for n := uint64(1000); ; n++ {
				r.Points = []replica.Point{{Point: lineage.Point{Epoch: epoch(n), Seq: 1<<40 + n}, Place: n}}
				next, err := r.Preserve(lineage.Point{}, false, now)
				if errors.Is(err, provision.ErrNoSpace) {
					break
				}
				check(next, err)
			}
			if len(r.Branches) < 50 {
				t.Errorf("there is room for %d branches", len(r.Branches))
			}
			r.Points = nil
			for seq := uint64(1 << 50); len(r.Points) < provision.MaxPoints; seq++ {
				next, _, err := r.Snapshot(provision.PointRequest{Volume: "pvc-1", Point: lineage.Point{Epoch: epoch(1), Seq: seq}}, seq, now)
				check(next, err)
			}
			for n := range uint64(21) { // three of each other node
				check(r.Hold(ownership.Hold{For: node(n / 3), Point: r.Points[n].Point, Until: now.Add(time.Hour + time.Duration(n*n))}, now))
			}
			m := provision.Mark{Promise: ownership.Promise{Primary: node(98), Boot: node(97)}, Opened: epoch(99), Closed: epoch(99)}
			for n := range uint64(lineage.MaxBranches) {
				m.Promise.Lineage = m.Promise.Lineage.Extend(lineage.Branch{Epoch: epoch(n + 1), From: lineage.Point{Epoch: epoch(n), Seq: 1<<40 + n}})
			}
			for n := range uint64(8) {
				at := lineage.Point{Epoch: epoch(200 + n), Seq: 1 << 40}
				m.Promise.Losses = append(m.Promise.Losses, ownership.Loss{Epoch: epoch(300 + n), Kept: at, Known: at})
			}
			m.Promise.Epoch = m.Promise.Lineage.Head()
			check(r.Mark(m, now))
			text, err := r.Encode()
			if err != nil {
				t.Error(err)
			}
			t.Logf("%d points, %d branches and %d holds, in %d bytes", len(r.Points), len(r.Branches), len(r.Holds), len(text))
		})
	}
}

func TestAPlaceIsLeftOverOnceNothingNamesIt(t *testing.T) {
	r := sample()
	for place, want := range map[uint64]bool{1: false, 2: false, 3: false, 4: true} {
		if got := r.Leftover(place); got != want {
			t.Errorf("place %d is left over: %v", place, got)
		}
	}
	if got := r.Abort(now); !got.Leftover(3) || got.Leftover(1) {
		t.Error("an aborted stream keeps its place, or takes another along")
	}
	if got := r.Free([]uint64{9, 4}); got != 10 {
		t.Errorf("the next place is %d", got)
	}
}

func TestAChangeLeavesTheOldRecordAlone(t *testing.T) {
	r, before := sample(), sample()
	_ = r.Forget(at(2), now)
	_ = r.Release("snap-1", at(1), now.Add(-time.Hour), true)
	_, _ = r.Preserve(lineage.Point{}, false, now)
	_, _ = r.RollBack(at(1), false, now)
	if diff := cmp.Diff(before, r, cmpopts.IgnoreUnexported(replica.Record{})); diff != "" {
		t.Errorf("it changed (-want +got):\n%s", diff)
	}
}

func TestABranchThatIsAlsoACSISnapshotStaysUntilBothAreGone(t *testing.T) {
	for name, steps := range map[string][2]func(replica.Record) replica.Record{
		"the branch first":   {forget, release},
		"the snapshot first": {release, forget},
	} {
		t.Run(name, func(t *testing.T) {
			r := replica.Record{
				Exists: true, Points: []replica.Point{{Point: at(1), Place: 1}},
				Branches: []replica.Branch{{KeptBranch: provision.KeptBranch{Tip: at(2)}, Place: 2}}, Snapshots: map[string]lineage.Point{"snap-1": at(2)},
			}
			if r = steps[0](r); r.Leftover(2) {
				t.Error("its data is left over too early")
			}
			if r = steps[1](r); !r.Leftover(2) {
				t.Error("its data stays")
			}
		})
	}
}

func forget(r replica.Record) replica.Record  { return r.Forget(at(2), now) }
func release(r replica.Record) replica.Record { return r.Release("snap-1", at(2), now, true) }
