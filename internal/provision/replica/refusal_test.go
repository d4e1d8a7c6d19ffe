package replica_test

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
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

var two = lineage.Epoch{Number: 2, ID: "two"}

// copyOf returns the record of a copy that is open for writing in epoch one and holds some points of
// it. The place of a point has its number.
func copyOf(points ...uint64) replica.Record {
	r := replica.Record{
		Exists: true, Live: true, Opened: one,
		Promise: ownership.Promise{Epoch: one, Primary: "n1", Lineage: lineage.Lineage{{Epoch: one}}},
	}
	for _, seq := range points {
		r.Points, r.Last = append(r.Points, replica.Point{Point: at(seq), Place: seq}), seq
	}
	return r
}

// with returns a record that was changed in place.
func with(r replica.Record, change func(*replica.Record)) replica.Record {
	change(&r)
	return r
}

func closed(r *replica.Record)  { r.Closed = one }
func follows(r *replica.Record) { r.Live = false }
func tagged(r *replica.Record)  { r.Snapshots = map[string]lineage.Point{"snap-1": at(1)} }
func receiving(r *replica.Record) {
	r.Receiving = &replica.Receiving{Base: at(1), Target: at(9), Place: 9}
}

// aside puts a point aside as a branch, or as the data of a CSI snapshot alone.
func aside(seq uint64, snapshot bool) func(*replica.Record) {
	return func(r *replica.Record) {
		r.Branches = append(r.Branches, replica.Branch{KeptBranch: provision.KeptBranch{Tip: at(seq), From: at(1)}, Place: seq, Snapshot: snapshot})
	}
}

func point(seq uint64, snapshot string) provision.PointRequest {
	return provision.PointRequest{Volume: "pvc-1", Point: at(seq), Snapshot: snapshot}
}

func take(q provision.PointRequest) func(replica.Record) (replica.Record, error) {
	return func(r replica.Record) (replica.Record, error) {
		n, _, err := r.Snapshot(q, 50, now)
		return n, err
	}
}

func rollBack(to uint64, dirty bool) func(replica.Record) (replica.Record, error) {
	return func(r replica.Record) (replica.Record, error) { return r.RollBack(at(to), dirty, now) }
}

func preserve(common lineage.Point, dirty bool) func(replica.Record) (replica.Record, error) {
	return func(r replica.Record) (replica.Record, error) { return r.Preserve(common, dirty, now) }
}

func drop(sending []lineage.Point, points ...lineage.Point) func(replica.Record) (replica.Record, error) {
	return func(r replica.Record) (replica.Record, error) { return r.Drop(points, sending, now) }
}

func hold(owner string, seq uint64, d time.Duration) func(replica.Record) (replica.Record, error) {
	return func(r replica.Record) (replica.Record, error) {
		return r.Hold(ownership.Hold{For: owner, Point: at(seq), Until: now.Add(d)}, now)
	}
}

func mark(m provision.Mark) func(replica.Record) (replica.Record, error) {
	return func(r replica.Record) (replica.Record, error) { return r.Mark(m, now) }
}

func head(r replica.Record) (replica.Record, error) {
	n, _, err := r.Head(now)
	return n, err
}

func many(n int) (seqs []uint64) {
	for seq := range n {
		seqs = append(seqs, uint64(seq+1)) //nolint:gosec // small
	}
	return seqs
}

func fullOfHolds(r *replica.Record) {
	for n := range provision.MaxHolds {
		r.Holds = append(r.Holds, ownership.Hold{For: "n" + strings.Repeat("1", n), Point: at(1), Until: now.Add(time.Hour)})
	}
}

func TestAChangeThatWouldBreakTheRecordIsRefusedWithItsReason(t *testing.T) {
	strange := lineage.Epoch{Number: 9, ID: "../x"}
	for name, c := range map[string]struct {
		r      replica.Record
		change func(replica.Record) (replica.Record, error)
		class  error
		why    string
	}{
		"an epoch of no node is opened":     {copyOf(), mark(provision.Mark{Opened: strange}), provision.ErrInvalid, "is no epoch"},
		"an older epoch is opened":          {with(copyOf(), func(r *replica.Record) { r.Opened = two }), mark(provision.Mark{Opened: one}), provision.ErrConflict, "opened or closed in epoch"},
		"a rival of a closed one is closed": {with(copyOf(), closed), mark(provision.Mark{Closed: lineage.Epoch{Number: 1, ID: "rival"}}), provision.ErrConflict, "opened or closed in epoch"},

		"a point without a number":                  {copyOf(), take(provision.PointRequest{Volume: "pvc-1"}), provision.ErrInvalid, "not the number of a point"},
		"a held point as a CSI snapshot":            {copyOf(1), take(point(1, "snap-1")), provision.ErrConflict, "without the other"},
		"a CSI snapshot as another point":           {with(copyOf(1), tagged), take(point(2, "snap-1")), provision.ErrConflict, "without the other"},
		"a point of no copy":                        {replica.Record{}, take(point(1, "")), provision.ErrConflict, "mark it first"},
		"a point of a head that does not follow":    {with(copyOf(1), follows), take(point(2, "")), provision.ErrConflict, "does not follow its newest point"},
		"an older point":                            {copyOf(2), take(point(1, "")), provision.ErrConflict, "is not newer than"},
		"a point that was put aside":                {with(copyOf(1), aside(2, false)), take(point(2, "")), provision.ErrConflict, "is not newer than"},
		"a point beyond the bound":                  {copyOf(many(provision.MaxPoints)...), take(point(99, "")), provision.ErrNoSpace, "points already"},
		"a point for which the record has no room":  {with(copyOf(1), fullOfNames), take(point(2, "")), provision.ErrNoSpace, "no room for another point"},
		"a rollback to a point that is not held":    {with(copyOf(1), closed), rollBack(7, false), provision.ErrNotFound, "point"},
		"a rollback of writes that are in no point": {with(copyOf(1), closed), rollBack(1, true), provision.ErrConflict, "writes that are in no point"},
		"a rollback of an open copy":                {copyOf(1), rollBack(1, false), provision.ErrConflict, "open for writing in epoch"},
		"a rollback of what is in no branch":        {with(copyOf(1, 2), closed), rollBack(1, false), provision.ErrConflict, "is in no branch yet"},
		"a rollback of what is a CSI snapshot only": {with(with(copyOf(1, 2), closed), aside(2, true)), rollBack(1, false), provision.ErrConflict, "is in no branch yet"},
		"a rollback with a branch of another point": {with(with(copyOf(1, 2), closed), aside(3, false)), rollBack(1, false), provision.ErrConflict, "is in no branch yet"},

		"no point is put aside":                          {copyOf(), preserve(lineage.Point{}, false), provision.ErrNotFound, "has no point"},
		"writes that are in no point are put aside":      {copyOf(1), preserve(at(1), true), provision.ErrConflict, "writes that are in no point"},
		"a branch from a point that is not held":         {copyOf(1), preserve(at(7), false), provision.ErrNotFound, "point"},
		"a branch for which the record has no room":      {with(copyOf(1), fullOfBranches), preserve(lineage.Point{}, false), provision.ErrNoSpace, "no room for another branch"},
		"the newest point is dropped":                    {copyOf(1, 2), drop(nil, at(1), at(2)), provision.ErrInUse, "newest one"},
		"a held point is dropped":                        {with(copyOf(1, 2), fullOfHolds), drop(nil, at(1)), provision.ErrInUse, "held"},
		"a CSI snapshot is dropped":                      {with(copyOf(1, 2), tagged), drop(nil, at(1)), provision.ErrInUse, "held"},
		"the base of a stream that is received":          {with(copyOf(1, 2), receiving), drop(nil, at(1)), provision.ErrInUse, "part of a stream"},
		"a point that is sent":                           {copyOf(1, 2), drop([]lineage.Point{at(1)}, at(1)), provision.ErrInUse, "part of a stream"},
		"a hold of a point that is not held":             {copyOf(1), hold("n2", 7, time.Hour), provision.ErrNotFound, "point"},
		"a hold for which the record has no room":        {with(copyOf(1), fullOfNames), hold("n2", 1, time.Hour), provision.ErrNoSpace, "no room for another point or hold"},
		"a hold without an owner":                        {copyOf(1), hold("", 1, time.Hour), provision.ErrInvalid, "a hold has an owner"},
		"a hold with a long owner":                       {copyOf(1), hold(strings.Repeat("n", 254), 1, time.Hour), provision.ErrInvalid, "a hold has an owner"},
		"a hold with a space in its owner":               {copyOf(1), hold("n 2", 1, time.Hour), provision.ErrInvalid, "a hold has an owner"},
		"a hold with a letter beyond ASCII in its owner": {copyOf(1), hold("nö", 1, time.Hour), provision.ErrInvalid, "a hold has an owner"},
		"a hold that is over":                            {copyOf(1), hold("n2", 1, 0), provision.ErrInvalid, "ends within"},
		"a hold for too long":                            {copyOf(1), hold("n2", 1, provision.MaxHold+1), provision.ErrInvalid, "ends within"},
		"a hold beyond the bound":                        {with(copyOf(1), fullOfHolds), hold("n2", 1, time.Hour), provision.ErrNoSpace, "holds already"},

		"the head of no copy":                       {replica.Record{}, head, provision.ErrConflict, "the volume is no copy"},
		"the head of a copy that was never opened":  {with(copyOf(1), func(r *replica.Record) { r.Opened = lineage.Epoch{} }), head, provision.ErrConflict, "not open for writing"},
		"the head of a copy that was closed":        {with(copyOf(1), closed), head, provision.ErrConflict, "not open for writing"},
		"the head in an epoch that is not promised": {with(copyOf(1), func(r *replica.Record) { r.Opened = two }), head, provision.ErrConflict, "but promised"},
		"the head of a condemned copy":              {with(copyOf(1), func(r *replica.Record) { r.Fate.Condemned = true }), head, provision.ErrConflict, "to be destroyed"},
		"the head of a copy in quarantine":          {with(copyOf(1), func(r *replica.Record) { r.Fate.Quarantined = true }), head, provision.ErrConflict, "to be destroyed"},
		"the head of a copy that receives a stream": {with(copyOf(1), receiving), head, provision.ErrConflict, "abort it first"},
		"the head of a copy without a point":        {with(copyOf(), follows), head, provision.ErrConflict, "has no point"},
	} {
		t.Run(name, func(t *testing.T) {
			before := c.r
			got, err := c.change(c.r)
			if !errors.Is(err, c.class) || !strings.Contains(err.Error(), c.why) {
				t.Errorf("%v; want %q and %q", err, c.class, c.why)
			}
			if diff := cmp.Diff(before, got, cmpopts.IgnoreUnexported(replica.Record{})); diff != "" && !errors.Is(err, provision.ErrNoSpace) {
				t.Errorf("the record that comes with the error differs (-before +after):\n%s", diff)
			}
		})
	}
}

// hash is a name of 64 letters that no packing makes much shorter.
func hash(n uint64) string {
	return fmt.Sprintf("%x", sha256.Sum256(binary.BigEndian.AppendUint64(nil, n)))
}

// fullOfNames fills a record with the names of CSI snapshots.
func fullOfNames(r *replica.Record) {
	r.Snapshots = map[string]lineage.Point{}
	for n := range uint64(200) {
		r.Snapshots[hash(n)] = at(1)
	}
}

// fullOfBranches fills a record with branches of epochs of their own.
func fullOfBranches(r *replica.Record) {
	for n := range uint64(200) {
		tip := lineage.Point{Epoch: lineage.Epoch{Number: n + 1, ID: hash(n)}, Seq: n + 1}
		r.Branches = append(r.Branches, replica.Branch{KeptBranch: provision.KeptBranch{Tip: tip}, Place: n})
	}
}
