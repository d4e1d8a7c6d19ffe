package zpool

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/replica"
)

// kept returns the row of a record as ZFS reports it.
func kept(t *testing.T, n replica.Record) Row {
	t.Helper()
	props, err := copyProperties(n)
	if err != nil {
		t.Fatal(err)
	}
	return Row{copyFirst: strings.TrimPrefix(props[0], propCopyFirst+"="), copyRest: strings.TrimPrefix(props[1], propCopyRest+"=")}
}

func records(t *testing.T) map[string]replica.Record {
	t.Helper()
	small, err := replica.Record{}.Mark(provision.Mark{Opened: lineage.Epoch{Number: 1, ID: "one"}}, time.Unix(1e9, 0))
	if err != nil {
		t.Fatal(err)
	}
	large := func(points uint64) replica.Record {
		r := small
		for n := range points {
			r.Points = append(r.Points, replica.Point{Point: lineage.Point{Epoch: lineage.Epoch{Number: n * n * n, ID: "one"}, Seq: n + 1}, Place: n + 1})
		}
		return r
	}
	return map[string]replica.Record{"in one property": small, "in two properties": large(180), "packed, in two properties": large(800)}
}

func TestARecordIsReadAsItWasWritten(t *testing.T) {
	for what, n := range records(t) {
		r := kept(t, n)
		if len(r.copyFirst) > longestPart || len(r.copyRest) > longestPart || (r.copyRest == none) != (what == "in one property") {
			t.Errorf("%s: it has %d and %d bytes", what, len(r.copyFirst), len(r.copyRest))
		}
		got, err := readCopy(r)
		if diff := cmp.Diff(n, got, cmpopts.IgnoreUnexported(replica.Record{})); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", what, err, diff)
		}
	}
}

func TestARecordOfWhichAPartIsMissingIsDamaged(t *testing.T) {
	all := records(t)
	whole, other := kept(t, all["in two properties"]), kept(t, all["in one property"])
	for what, r := range map[string]Row{
		"without its rest":        {copyFirst: whole.copyFirst, copyRest: none},
		"without its beginning":   {copyFirst: none, copyRest: whole.copyRest},
		"with another's rest":     {copyFirst: other.copyFirst, copyRest: whole.copyRest},
		"with another number":     {copyFirst: strings.Replace(other.copyFirst, `"Number":1`, `"Number":2`, 1), copyRest: none},
		"without length and sum":  {copyFirst: other.copyFirst[strings.Index(other.copyFirst, "{"):], copyRest: none},
		"that says nothing of it": {copyFirst: "x", copyRest: none},
	} {
		if n, err := readCopy(r); !errors.Is(err, provision.ErrUnavailable) {
			t.Errorf("%s: %+v, %v", what, n, err)
		}
	}
	if n, err := readCopy(Row{copyFirst: "-", copyRest: "-"}); err != nil || n.Exists {
		t.Errorf("no record: %+v, %v", n, err)
	}
}

func TestACopyWhosePointsHaveNoRecordIsLeftAlone(t *testing.T) {
	z := facts(t, []string{
		line("tank", "filesystem", "0", "0", "24576", "0", "-", "0", "0", "0", "-", "-", "1", "1", "-", "-", "-", "-", "-", "-", "-", "-", "on", "1", "-", "-", "-", "-", "-", "-"),
		line("tank/berth-copies/pvc-1", "filesystem", "0", "0", "24576", "0", "-", "0", "0", "0", "-", "-", "1", "1", "-", "-", "-", "-", "-", "-", "-", "-", "off", "2", "-", "-", "-", "-", "-", "-"),
		line("tank/berth-copies/pvc-1/4", "volume", "0", "0", "50331648", "0", "67108864", "0", "-", "-", "-", "-", "9", "1", "-", "-", "-", "-", "-", "-", "-", "-", "-", "14", "-", "-", "none", "-", "-", "-"),
		line("tank/berth-copies/pvc-1/4@berth-point-4", "snapshot", "0", "-", "12288", "0", "67108864", "-", "-", "-", "-", "-", "11", "1", "-", "-", "-", "-", "-", "-", "-", "-", "-", "15", "-", "-", "-", "-", "-", "-"),
	})
	p := Planner{Now: time.Unix(1e9, 0)}
	z.Health = stateOnline
	if left := p.Untidy(z); len(left) > 0 {
		t.Errorf("these are tidied: %v", left)
	}
	if c := z.Copies[CopyName("tank", "pvc-1")]; c == nil || c.Damage == nil {
		t.Errorf("the copy is %+v", c)
	}
	if _, err := p.Create(z, provision.CreateRequest{ID: "pvc-1", Pool: PoolRef("tank"), Size: Unit}, "tank"); !errors.Is(err, provision.ErrUnavailable) {
		t.Errorf("making the volume anew: %v", err)
	}
}
