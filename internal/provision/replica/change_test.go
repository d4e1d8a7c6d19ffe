package replica_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/replica"
)

func forgetting(tip uint64) func(replica.Record) (replica.Record, error) {
	return func(r replica.Record) (replica.Record, error) { return r.Forget(at(tip), now), nil }
}

func longPromise(r *replica.Record) { r.Promise.Boot = strings.Repeat("b", 8000) }

func second(r *replica.Record) { r.Snapshots = map[string]lineage.Point{"snap-2": at(2)} }

func TestAChangeMakesExactlyWhatItSays(t *testing.T) {
	hour := func(owner string, seq uint64) ownership.Hold {
		return ownership.Hold{For: owner, Point: at(seq), Until: now.Add(time.Hour)}
	}
	holds := func(all ...ownership.Hold) func(*replica.Record) {
		return func(r *replica.Record) { r.Holds = all }
	}
	tip := func(seq uint64) func(*replica.Record) { return func(r *replica.Record) { r.Preserved = at(seq) } }
	longest := strings.Repeat("~", 253)
	promised := ownership.Promise{Epoch: two, Lineage: lineage.Lineage{{Epoch: one}, {Epoch: two, From: at(1)}}}
	for name, c := range map[string]struct {
		r      replica.Record
		change func(replica.Record) (replica.Record, error)
		want   replica.Record
	}{
		"the first mark of a volume":         {replica.Record{}, mark(provision.Mark{Opened: one}), replica.Record{Exists: true, Live: true, Opened: one}},
		"a mark of a head that lags":         {with(copyOf(1), follows), mark(provision.Mark{Closed: one}), with(with(copyOf(1), follows), closed)},
		"a promise":                          {copyOf(1), mark(provision.Mark{Promise: promised}), with(copyOf(1), func(r *replica.Record) { r.Promise = promised })},
		"a mark that is repeated":            {copyOf(1), mark(provision.Mark{Opened: one}), copyOf(1)},
		"a fate":                             {copyOf(1), mark(provision.Mark{Fate: &provision.Fate{Condemned: true}}), with(copyOf(1), func(r *replica.Record) { r.Fate.Condemned = true })},
		"a mark that says nothing of a fate": {with(copyOf(1), func(r *replica.Record) { r.Fate.Condemned = true }), mark(provision.Mark{Closed: one}), with(with(copyOf(1), closed), func(r *replica.Record) { r.Fate.Condemned = true })},

		"a point": {copyOf(1), take(point(2, "")), with(copyOf(1), func(r *replica.Record) {
			r.Points, r.Last = append(r.Points, replica.Point{Point: at(2), Place: 50}), 50
		})},
		"a point in a place that is not the last one": {with(copyOf(1), func(r *replica.Record) { r.Last = 99 }), take(point(2, "")), with(copyOf(1), func(r *replica.Record) {
			r.Points, r.Last = append(r.Points, replica.Point{Point: at(2), Place: 50}), 99
		})},
		"a CSI snapshot":                {copyOf(), take(point(1, "snap-1")), with(with(copyOf(1), tagged), func(r *replica.Record) { r.Points[0].Place, r.Last = 50, 50 })},
		"a point that is held":          {copyOf(1), take(point(1, "")), copyOf(1)},
		"a point beside a long promise": {with(copyOf(), longPromise), take(point(1, "")), with(with(copyOf(1), longPromise), func(r *replica.Record) { r.Points[0].Place, r.Last = 50, 50 })},
		"a point beside a branch": {with(copyOf(1), aside(9, false)), take(point(2, "")), with(with(copyOf(1), aside(9, false)), func(r *replica.Record) {
			r.Points, r.Last = append(r.Points, replica.Point{Point: at(2), Place: 50}), 50
		})},
		"a CSI snapshot beside another": {with(copyOf(1), tagged), take(point(2, "snap-2")), with(copyOf(1), func(r *replica.Record) {
			r.Points, r.Last = append(r.Points, replica.Point{Point: at(2), Place: 50}), 50
			r.Snapshots = map[string]lineage.Point{"snap-1": at(1), "snap-2": at(2)}
		})},
		"a CSI snapshot that is held": {with(copyOf(1), tagged), take(point(1, "snap-1")), with(copyOf(1), tagged)},

		"a rollback to the newest point":     {with(copyOf(1, 2), closed), rollBack(2, false), with(with(copyOf(1, 2), closed), follows)},
		"a rollback under a head that lags":  {with(copyOf(1), follows), rollBack(1, true), with(copyOf(1), follows)},
		"a rollback of what is in a branch":  {with(with(copyOf(1, 2), closed), aside(2, false)), rollBack(1, false), with(with(with(with(copyOf(1), closed), aside(2, false)), follows), func(r *replica.Record) { r.Last = 2 })},
		"a rollback of a point that is held": {with(with(with(copyOf(1, 2), follows), aside(2, false)), holds(hour("n2", 1), hour("n2", 2))), rollBack(1, false), with(with(with(with(copyOf(1), follows), aside(2, false)), holds(hour("n2", 1))), func(r *replica.Record) { r.Last = 2 })},
		"a rollback of a CSI snapshot between": {
			with(with(with(copyOf(1, 2, 3), follows), aside(3, false)), func(r *replica.Record) {
				r.Snapshots = map[string]lineage.Point{"snap-1": at(1), "snap-2": at(2), "snap-3": at(3)}
			}), rollBack(1, false),
			with(with(with(copyOf(1), follows), aside(3, false)), func(r *replica.Record) {
				r.Snapshots = map[string]lineage.Point{"snap-1": at(1), "snap-2": at(2), "snap-3": at(3)}
				r.Branches = append(r.Branches, replica.Branch{KeptBranch: provision.KeptBranch{Tip: at(2)}, Place: 2, Snapshot: true})
				r.Last = 3
			}),
		},

		"the newest point is put aside":                 {copyOf(1, 2), preserve(at(1), false), with(with(copyOf(1, 2), aside(2, false)), tip(2))},
		"it is put aside under a head that lags":        {with(copyOf(1, 2), follows), preserve(at(1), true), with(with(with(copyOf(1, 2), follows), aside(2, false)), tip(2))},
		"it is put aside again":                         {with(copyOf(1, 2), aside(2, false)), preserve(lineage.Point{}, false), with(with(copyOf(1, 2), aside(2, false)), tip(2))},
		"it is put aside beside another":                {with(copyOf(1, 2), aside(9, false)), preserve(at(1), false), with(with(with(copyOf(1, 2), aside(9, false)), aside(2, false)), tip(2))},
		"a CSI snapshot alone becomes a branch":         {with(copyOf(1, 2), aside(2, true)), preserve(at(1), false), with(with(copyOf(1, 2), aside(2, false)), tip(2))},
		"a branch is forgotten":                         {with(with(copyOf(1), aside(2, false)), aside(3, false)), forgetting(2), with(copyOf(1), aside(3, false))},
		"a branch beside a CSI snapshot is forgotten":   {with(with(copyOf(1), tagged), aside(2, false)), forgetting(2), with(copyOf(1), tagged)},
		"a branch beside the data of a CSI snapshot is": {with(with(with(copyOf(1), second), aside(2, true)), aside(3, false)), forgetting(3), with(with(copyOf(1), second), aside(2, true))},
		"a point beside a held one is dropped":          {with(copyOf(1, 2, 3), holds(hour("n2", 1))), drop(nil, at(2)), with(copyOf(1, 3), holds(hour("n2", 1)))},
		"a point is dropped":                            {copyOf(1, 2, 3), drop([]lineage.Point{at(2), at(9)}, at(1), at(9)), with(copyOf(2, 3), func(*replica.Record) {})},
		"a point is dropped during another's stream":    {with(copyOf(1, 2, 3), receiving), drop(nil, at(2)), with(with(copyOf(1, 3), receiving), func(*replica.Record) {})},
		"a point whose hold has ended is dropped":       {with(copyOf(1, 2), holds(ownership.Hold{For: "n2", Point: at(1), Until: now})), drop(nil, at(1)), with(copyOf(2), holds())},

		"a hold":                           {copyOf(1), hold(longest, 1, provision.MaxHold), with(copyOf(1), holds(ownership.Hold{For: longest, Point: at(1), Until: now.Add(provision.MaxHold)}))},
		"a hold for longer":                {with(copyOf(1), holds(hour("n2", 1))), hold("n2", 1, 2*time.Hour), with(copyOf(1), holds(ownership.Hold{For: "n2", Point: at(1), Until: now.Add(2 * time.Hour)}))},
		"a hold beside three of its owner": {with(copyOf(1, 2, 3, 4), holds(hour("n2", 1), hour("n3", 1), hour("n2", 2), hour("n2", 3))), hold("n2", 4, time.Hour), with(copyOf(1, 2, 3, 4), holds(hour("n3", 1), hour("n2", 2), hour("n2", 3), hour("n2", 4)))},
		"a hold that comes late":           {with(copyOf(1, 2, 3), holds(hour("n2", 2), hour("n2", 3))), hold("n2", 1, time.Hour), with(copyOf(1, 2, 3), holds(hour("n2", 2), hour("n2", 3), hour("n2", 1)))},
		"a hold that is released":          {with(copyOf(1, 2), holds(hour("n2", 1), hour("n2", 2), hour("n3", 1))), func(r replica.Record) (replica.Record, error) { return r.Release("n2", at(1), now, true), nil }, with(copyOf(1, 2), holds(hour("n2", 2), hour("n3", 1)))},
		"a CSI snapshot of another point":  {with(copyOf(1, 2), tagged), func(r replica.Record) (replica.Record, error) { return r.Release("snap-1", at(2), now, true), nil }, with(copyOf(1, 2), tagged)},
		"a hold with a CSI snapshot's id":  {with(copyOf(1), tagged), func(r replica.Record) (replica.Record, error) { return r.Release("snap-1", at(1), now, false), nil }, with(copyOf(1), tagged)},
		"a stream that is aborted":         {with(copyOf(1), receiving), func(r replica.Record) (replica.Record, error) { return r.Abort(now), nil }, copyOf(1)},
		"the head is there":                {copyOf(), head, copyOf()},
		"the head is made":                 {with(copyOf(1), follows), head, copyOf(1)},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.change(c.r)
			if diff := cmp.Diff(c.want, got, cmpopts.IgnoreUnexported(replica.Record{}), cmpopts.EquateEmpty()); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestAPointThatIsHeldIsToldFromANewOne(t *testing.T) {
	for seq, want := range map[uint64]bool{1: true, 2: false} {
		if _, met, err := copyOf(1).Snapshot(point(seq, ""), 9, now); met != want || err != nil {
			t.Errorf("point %d is held: %v, %v", seq, met, err)
		}
	}
}

func TestAHeadIsMadeOnlyIfItDoesNotFollowTheNewestPoint(t *testing.T) {
	for _, live := range []bool{true, false} {
		r := with(copyOf(1), func(r *replica.Record) { r.Live = live })
		if _, made, err := r.Head(now); made == live || err != nil {
			t.Errorf("a head that counts: %v; it is made: %v, %v", live, made, err)
		}
	}
}

func TestAWaitForAPipeEndsWithItsCaller(t *testing.T) {
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	defer reader.Close()
	ctx, giveUp := context.WithCancel(t.Context())
	stop := replica.Until(ctx, reader.SetReadDeadline)
	time.AfterFunc(time.Millisecond, giveUp)
	if _, err := reader.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("reading: %v", err)
	}
	stop()
}

func TestAPipeThatItsCallerIsDoneWithIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, giveUp := context.WithCancel(t.Context())
		set := make(chan time.Time, 1)
		replica.Until(ctx, func(t time.Time) error { set <- t; return nil })()
		giveUp()
		if synctest.Wait(); len(set) > 0 {
			t.Error("a deadline was set")
		}
	})
}
