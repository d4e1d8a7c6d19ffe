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

// stream returns the header of a stream of epoch one, in full if the base is 0.
func stream(base, target uint64) provision.StreamHeader {
	h := provision.StreamHeader{Volume: "pvc-1", From: "n1"}
	h.Promise, h.Target, h.Size = copyOf().Promise, at(target), 4096
	if base != 0 {
		h.Base = at(base)
	}
	return h
}

// receiver holds some points and was never opened.
func receiver(points ...uint64) replica.Record {
	return with(copyOf(points...), func(r *replica.Record) { r.Opened, r.Live = lineage.Epoch{}, len(points) == 0 })
}

var plain = provision.Volume{ID: "pvc-1", Size: 4096, Filesystem: provision.Ext4}

func headed(h provision.StreamHeader, change func(*provision.StreamHeader)) provision.StreamHeader {
	change(&h)
	return h
}

func TestAStreamIsAppliedOnlyToACopyThatItFits(t *testing.T) {
	blank := provision.Volume{ID: "pvc-1", Size: 4096}
	tree := provision.Volume{ID: "pvc-1", Size: 4096, Content: provision.Content{Tree: provision.Dataset}}
	of := func(filesystem string) func(*provision.StreamHeader) {
		return func(h *provision.StreamHeader) { h.Filesystem = filesystem }
	}
	ext4 := of(provision.Ext4)
	for name, c := range map[string]struct {
		r     replica.Record
		h     provision.StreamHeader
		v     provision.Volume
		dirty bool
		why   string // empty if it is applied
	}{
		"an increment":                            {receiver(1), headed(stream(1, 2), ext4), plain, false, ""},
		"a stream in full":                        {receiver(1), headed(stream(0, 2), ext4), plain, false, ""},
		"a stream to a blank volume":              {replica.Record{}, headed(stream(0, 2), ext4), blank, false, ""},
		"a stream of a volume without data":       {receiver(), stream(0, 2), blank, false, ""},
		"a stream of a tree to a tree":            {receiver(), headed(stream(0, 2), of(provision.Dataset)), tree, false, ""},
		"a head that does not count":              {receiver(1), headed(stream(1, 2), ext4), plain, true, ""},
		"a copy that was closed":                  {with(copyOf(1), closed), headed(stream(1, 2), ext4), plain, false, ""},
		"the target's own CSI snapshot":           {with(receiver(1), func(r *replica.Record) { r.Snapshots = map[string]lineage.Point{"snap-1": at(2)} }), headed(stream(1, 2), func(h *provision.StreamHeader) { ext4(h); h.Snapshots = []string{"snap-1"} }), plain, false, ""},
		"a CSI snapshot that is not the stream's": {with(receiver(1), tagged), headed(stream(1, 2), ext4), plain, false, ""},
		"a stream in full with too many points":   {receiver(many(provision.MaxPoints)...), headed(stream(0, 99), ext4), plain, false, ""},

		"a head that lags behind an open epoch":     {with(copyOf(1), follows), headed(stream(1, 2), ext4), plain, false, ""},
		"a stream in full to a record without room": {with(receiver(1), fullOfNames), headed(stream(0, 2), ext4), plain, false, ""},
		"a stream without a filesystem to a tree":   {receiver(), stream(0, 2), tree, false, ""},
		"no size":                            {receiver(1), headed(stream(1, 2), func(h *provision.StreamHeader) { h.Size = 0 }), plain, false, "of 0 bytes"},
		"another volume":                     {receiver(1), headed(stream(1, 2), ext4), provision.Volume{ID: "pvc-2", Size: 4096, Filesystem: provision.Ext4}, false, "is of volume pvc-1"},
		"another filesystem":                 {receiver(1), headed(stream(1, 2), of(provision.XFS)), plain, false, "with filesystem"},
		"no filesystem":                      {receiver(1), stream(1, 2), plain, false, "with filesystem"},
		"a tree to a volume that is none":    {receiver(), headed(stream(0, 2), of(provision.Dataset)), blank, false, "with filesystem"},
		"a filesystem to a tree":             {receiver(), headed(stream(0, 2), ext4), tree, false, "with filesystem"},
		"a volume with data that is no copy": {replica.Record{}, headed(stream(0, 2), ext4), plain, false, "is no copy"},
		"a copy that is open":                {copyOf(1), headed(stream(1, 2), ext4), plain, false, "open for writing in epoch"},
		"too many points":                    {receiver(many(provision.MaxPoints)...), headed(stream(provision.MaxPoints, 99), ext4), plain, false, "points already"},
		"another point's CSI snapshot":       {with(receiver(1), tagged), headed(stream(1, 2), func(h *provision.StreamHeader) { ext4(h); h.Snapshots = []string{"snap-1"} }), plain, false, "snapshot snap-1 of volume pvc-1 is point"},
		"a record without room":              {with(receiver(1), func(r *replica.Record) { fullOfNames(r) }), headed(stream(1, 2), ext4), plain, false, "no room"},
		"a head with writes":                 {with(with(copyOf(1), closed), func(*replica.Record) {}), headed(stream(1, 2), ext4), plain, true, "is refused"},
		"a formatted head without a point":   {with(with(copyOf(), closed), func(r *replica.Record) { r.Opened = lineage.Epoch{} }), headed(stream(0, 2), ext4), plain, false, "is refused"},
		"an opened head without a point":     {with(copyOf(), closed), headed(stream(0, 2), ext4), blank, false, "is refused"},
		"a larger volume":                    {receiver(1), headed(stream(1, 2), func(h *provision.StreamHeader) { ext4(h); h.Size = 8192 }), plain, false, "is refused"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.r.May(c.h, c.v, c.dirty)
			if (err == nil) != (c.why == "") || err != nil && !strings.Contains(err.Error(), c.why) {
				t.Errorf("%v; want %q", err, c.why)
			}
		})
	}
}

func TestAStreamGoesOnOnlyWhereThatStreamEnded(t *testing.T) {
	h := stream(1, 2)
	begun := receiver(1).Begin(h, 7, now)
	for name, c := range map[string]struct {
		r    replica.Record
		h    provision.StreamHeader
		want bool
	}{
		"the same":       {begun, h, true},
		"nothing begun":  {receiver(1), h, false},
		"another base":   {begun, stream(0, 2), false},
		"another target": {begun, stream(1, 3), false},
		"another epoch":  {begun, headed(h, func(h *provision.StreamHeader) { h.Promise.Epoch = two }), true},
		"another sender": {begun, headed(h, func(h *provision.StreamHeader) { h.From = "n9" }), false},
		"another size":   {begun, headed(h, func(h *provision.StreamHeader) { h.Size++ }), false},
	} {
		if got := c.r.Resumes(c.h); got != c.want {
			t.Errorf("%s: it goes on: %v", name, got)
		}
		if _, err := c.r.Received(c.h, 8, now); errors.Is(err, provision.ErrConflict) == c.want {
			t.Errorf("%s: it ends with %v", name, err)
		}
	}
}

func TestTheRecordOfAStreamThatBeginsAndEnds(t *testing.T) {
	first := replica.Record{}.Begin(stream(0, 2), 7, now)
	want := replica.Record{Exists: true, Last: 7, Receiving: &replica.Receiving{Target: at(2), Epoch: one, From: "n1", Size: 4096, Place: 7}}
	if diff := cmp.Diff(want, first, cmpopts.IgnoreUnexported(replica.Record{})); diff != "" {
		t.Errorf("a stream to a volume that was no copy begins (-want +got):\n%s", diff)
	}
	if later := receiver(1).Begin(stream(1, 2), 7, now); later.Live || later.Last != 7 {
		t.Errorf("a stream to a copy begins: %+v", later)
	}
	if later := copyOf(1).Begin(stream(1, 2), 7, now); !later.Live {
		t.Errorf("a stream to a head that counts begins: %+v", later)
	}
	for name, c := range map[string]struct {
		h    provision.StreamHeader
		want []replica.Point
		left []replica.Branch
	}{
		"an increment":     {stream(1, 2), []replica.Point{{Point: at(1), Place: 1}, {Point: at(2), Place: 8}}, nil},
		"a stream in full": {stream(0, 2), []replica.Point{{Point: at(2), Place: 8}}, []replica.Branch{{KeptBranch: provision.KeptBranch{Tip: at(1)}, Place: 1, Snapshot: true}}},
	} {
		c.h.Snapshots = []string{"snap-2"}
		got, err := with(receiver(1), tagged).Begin(c.h, 7, now).Received(c.h, 8, now)
		if err != nil {
			t.Fatal(err)
		}
		want := replica.Record{
			Exists: true, Promise: c.h.Promise, Points: c.want, Branches: c.left, Last: 8,
			Snapshots: map[string]lineage.Point{"snap-1": at(1), "snap-2": at(2)},
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(replica.Record{}), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s ends (-want +got):\n%s", name, diff)
		}
	}
}

func TestACopyIsSeenAsItsRecordSays(t *testing.T) {
	v := provision.Volume{ID: "pvc-1", Size: 4096, Filesystem: provision.Ext4}
	r := with(with(with(copyOf(1), aside(2, false)), aside(3, true)), tagged)
	receiving(&r)
	got := r.View(v, true, "7")
	want := provision.Replica{
		Copy: ownership.Copy{
			Exists: true, Size: 4096, Promise: r.Promise, Opened: one, Points: []lineage.Point{at(1)}, Dirty: true,
			Holds: []ownership.Hold{{For: "snap-1", Point: at(1), Until: provision.NoEnd}},
		},
		Filesystem: provision.Ext4, Writable: true, Snapshots: r.Snapshots, Branches: []provision.KeptBranch{{Tip: at(2), From: at(1)}},
		Receiving: &provision.Receiving{Base: at(1), Target: at(9), Token: "7"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, c := range map[string]struct {
		r                replica.Record
		exists, writable bool
		problem          string
	}{
		"no copy":                     {replica.Record{}, false, false, ""},
		"a copy that is open":         {copyOf(), true, true, ""},
		"a copy that was only opened": {replica.Record{Exists: true, Live: true, Opened: one}, true, false, "but promised"},
		"a copy that only holds data": {replica.Record{Exists: true, Points: copyOf(1).Points}, true, false, "cannot be mounted"},
		"a copy that only promised":   {replica.Record{Exists: true, Live: true, Promise: copyOf().Promise}, true, false, "not open for writing"},
		"a head that lags":            {with(copyOf(1), follows), true, false, "cannot be mounted"},
		"a first stream":              {replica.Record{}.Begin(stream(0, 1), 1, now), false, false, "cannot be mounted"},
	} {
		s := c.r.View(v, true, "")
		if s.Exists != c.exists || s.Writable != c.writable || s.Dirty != c.r.Live {
			t.Errorf("%s is seen as %+v", name, s)
		}
		if p := c.r.Problem(); (p == "") != (c.problem == "") || !strings.Contains(p, c.problem) {
			t.Errorf("%s has the problem %q, want %q", name, p, c.problem)
		}
	}
}

func TestARecordThatCannotBeWrittenIsAnError(t *testing.T) {
	r := with(copyOf(1), func(r *replica.Record) { r.Fate.DestroyAt = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) })
	if text, err := r.Encode(); err == nil {
		t.Errorf("it is written as %s", text)
	}
}

func TestOnlyAHeadThatCountsHoldsDataThatIsInNoPoint(t *testing.T) {
	for live, want := range map[bool]bool{true: true, false: false} {
		if got := with(copyOf(), func(r *replica.Record) { r.Live = live }).Unpointed(plain); got != want {
			t.Errorf("the head counts: %v; it may hold data: %v", live, got)
		}
	}
}
