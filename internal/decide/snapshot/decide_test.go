package snapshot

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/decide"
	"berth.dev/berth/internal/provision"
)

func TestDecide(t *testing.T) {
	const readyState, copyingState, failedState, goneState = v1alpha1.SnapshotReady, v1alpha1.SnapshotCopying, v1alpha1.SnapshotFailed, v1alpha1.SnapshotGone
	lost := took(failedState, v1alpha1.ReasonDeviceMissing)
	tests := map[string]struct {
		snapshot *v1alpha1.Snapshot
		record   *provision.Snapshot
		step     decide.Verb
		// state and reason of the entry; empty if the node writes none.
		state  v1alpha1.SnapshotState
		reason string
		taken  bool
	}{
		"a new one is taken":                            {snapshot: snapshot(), step: decide.Take},
		"one taken before a crash is reported":          {snapshot: snapshot(), record: record(), step: decide.Report, state: readyState, reason: "Taken", taken: true},
		"one that is finished needs nothing":            {snapshot: snapshot(saying(ready())), record: record(), step: decide.None, state: readyState, reason: "Taken", taken: true},
		"one whose data is copied is said so":           {snapshot: snapshot(), record: record(copying), step: decide.Report, state: copyingState, reason: "Copying", taken: true},
		"one whose data was copied is ready":            {snapshot: snapshot(saying(took(copyingState, "Copying"))), record: record(), step: decide.Report, state: readyState, reason: "Taken", taken: true},
		"one that was ready is never taken again":       {snapshot: snapshot(saying(ready())), step: decide.Report, state: failedState, reason: "DeviceMissing", taken: true},
		"one that was copied is never taken again":      {snapshot: snapshot(saying(took(copyingState, "Copying"))), step: decide.Report, state: failedState, reason: "DeviceMissing", taken: true},
		"one that was lost stays lost":                  {snapshot: snapshot(saying(lost)), step: decide.Report, state: failedState, reason: "DeviceMissing", taken: true},
		"one that was removed is never taken again":     {snapshot: snapshot(saying(took(goneState, "Removed"))), step: decide.Report, state: failedState, reason: "DeviceMissing", taken: true},
		"one that comes back is ready again":            {snapshot: snapshot(saying(lost)), record: record(), step: decide.Report, state: readyState, reason: "Taken", taken: true},
		"one that is broken says that it was taken":     {snapshot: snapshot(), record: record(broken), step: decide.Report, state: failedState, reason: "DeviceMissing", taken: true},
		"one that found no room is tried again":         {snapshot: snapshot(saying(failed("NoSpace"))), step: decide.Take},
		"one that failed is tried again":                {snapshot: snapshot(saying(failed("ProvisionerError"))), step: decide.Take},
		"one whose volume was missing is tried again":   {snapshot: snapshot(saying(failed("SourceMissing"))), step: decide.Take},
		"one that was kept apart elsewhere is taken":    {snapshot: snapshot(saying(&v1alpha1.SnapshotReplica{Node: here, State: goneState, Reason: "Conflict"})), step: decide.Take},
		"one that is not supported is final":            {snapshot: snapshot(saying(failed("Unsupported"))), step: decide.None, state: failedState, reason: "Unsupported"},
		"one that is impossible is final":               {snapshot: snapshot(saying(failed("Invalid"))), step: decide.None, state: failedState, reason: "Invalid"},
		"one that conflicts is final":                   {snapshot: snapshot(saying(failed("Conflict"))), step: decide.None, state: failedState, reason: "Conflict"},
		"one that was refused and is there is reported": {snapshot: snapshot(saying(failed("Invalid"))), record: record(), step: decide.Report, state: readyState, reason: "Taken", taken: true},
		"one of another volume conflicts": {
			snapshot: snapshot(), record: record(func(r *provision.Snapshot) { r.Volume = "pvc-x" }), step: decide.Report, state: failedState, reason: "Conflict"},
		"one in another pool conflicts": {
			snapshot: snapshot(), record: record(func(r *provision.Snapshot) { r.Pool.Name = "vg1" }), step: decide.Report, state: failedState, reason: "Conflict"},
		"one taken at another time does not replace it": {
			snapshot: snapshot(saying(ready())), record: record(later), step: decide.Report, state: failedState, reason: "Conflict", taken: true},
		"one of another size does not replace it": {
			snapshot: snapshot(saying(ready())), record: record(larger), step: decide.Report, state: failedState, reason: "Conflict", taken: true},

		"an adopted one is found":                      {snapshot: snapshot(adopted), record: record(), step: decide.Report, state: readyState, reason: "Taken", taken: true},
		"an adopted one is never taken":                {snapshot: snapshot(adopted), step: decide.Report, state: failedState, reason: "DeviceMissing"},
		"an adopted one that failed is never taken":    {snapshot: snapshot(adopted, saying(failed("NoSpace"))), step: decide.Report, state: failedState, reason: "DeviceMissing"},
		"an adopted one that was not found stays lost": {snapshot: snapshot(adopted, saying(failed("DeviceMissing"))), step: decide.Report, state: failedState, reason: "DeviceMissing"},
		"an adopted one that was lost stays lost":      {snapshot: snapshot(adopted, saying(lost)), step: decide.Report, state: failedState, reason: "DeviceMissing", taken: true},
		"an adopted one that is deleted is removed":    {snapshot: snapshot(adopted, deleting, saying(ready())), record: record(), step: decide.Remove},

		"one being deleted is removed": {snapshot: snapshot(deleting, saying(ready())), record: record(), step: decide.Remove},
		"one being deleted of which nothing was said is kept": {
			snapshot: snapshot(deleting), record: record(), step: decide.Keep, state: goneState, reason: "Conflict"},
		"one being deleted that conflicts is kept": {
			snapshot: snapshot(deleting, saying(failed("Conflict"))), record: record(), step: decide.Keep, state: goneState, reason: "Conflict"},
		"one being deleted that was impossible is kept": {
			snapshot: snapshot(deleting, saying(failed("Invalid"))), record: record(), step: decide.Keep, state: goneState, reason: "Conflict"},
		"one being deleted is kept if it was taken at another time": {
			snapshot: snapshot(deleting, saying(ready())), record: record(later), step: decide.Keep, state: goneState, reason: "Conflict", taken: true},
		"one being deleted is kept if it is in another pool": {
			snapshot: snapshot(deleting, saying(ready())), record: record(func(r *provision.Snapshot) { r.Pool.Name = "vg1" }), step: decide.Keep, state: goneState, reason: "Conflict", taken: true},
		"one being deleted is kept if it is of another volume": {
			snapshot: snapshot(deleting, saying(ready())), record: record(func(r *provision.Snapshot) { r.Volume = "pvc-x" }), step: decide.Keep, state: goneState, reason: "Conflict", taken: true},
		"one being deleted that was lost and is back is removed": {snapshot: snapshot(deleting, saying(lost)), record: record(), step: decide.Remove},
		"one being deleted that could not be is removed":         {snapshot: snapshot(deleting, saying(took(failedState, "PoolMissing"))), record: record(), step: decide.Remove},
		"one that conflicts and is wanted elsewhere is kept": {
			snapshot: snapshot(on("n2"), saying(failed("Conflict"))), record: record(), step: decide.Keep, state: goneState, reason: "Conflict"},
		"a deletion of what was never taken is answered":   {snapshot: snapshot(deleting), step: decide.Report, state: goneState, reason: "Removed"},
		"a deletion is answered after it is gone":          {snapshot: snapshot(deleting, saying(ready())), step: decide.Report, state: goneState, reason: "Removed", taken: true},
		"a deletion is answered once":                      {snapshot: snapshot(deleting, saying(took(goneState, "Removed"))), step: decide.None, state: goneState, reason: "Removed", taken: true},
		"a deletion elsewhere is no business of this node": {snapshot: snapshot(deleting, on("n2")), step: decide.None},
		"one that is not wanted here any more is removed":  {snapshot: snapshot(on("n2"), saying(ready())), record: record(), step: decide.Remove},
		"one that the object does not know of is kept":     {snapshot: snapshot(on("n2")), record: record(), step: decide.Keep},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			before := tc.snapshot.DeepCopy()
			got := Decide(tc.snapshot, here, Facts{Record: tc.record})
			if got.Verb != tc.step {
				t.Errorf("step %s; want %s", got.Verb, tc.step)
			}
			if !sameState(got.Entry, tc.state, tc.reason) || got.Entry != nil && (got.Entry.Taken != nil) != tc.taken {
				t.Errorf("entry %+v; want %s, %s, taken %v", got.Entry, tc.state, tc.reason, tc.taken)
			}
			if got.Entry != nil && (got.Entry.Taken != nil) != (got.Entry.RestoreSize != nil) {
				t.Errorf("entry %+v: a time without a size", got.Entry)
			}
			if got.Verb == decide.Keep && got.Message == "" {
				t.Errorf("message %q of step %s", got.Message, got.Verb)
			}
			if diff := cmp.Diff(before, tc.snapshot); diff != "" {
				t.Errorf("the snapshot was changed: %s", diff)
			}
		})
	}
}

func TestOnlyDataWithoutARecordIsLostWithItsPool(t *testing.T) {
	for name, tc := range map[string]struct {
		record *provision.Snapshot
		step   decide.Verb
		state  v1alpha1.SnapshotState
		reason string
	}{
		"there is no record": {step: decide.Report, state: "Failed", reason: "PoolMissing"},
		"there is one":       {record: record(), step: decide.Remove},
	} {
		t.Run(name, func(t *testing.T) {
			d := Decide(snapshot(deleting, saying(ready())), here, Facts{Record: tc.record, Lost: true})
			if d.Verb != tc.step || !sameState(d.Entry, tc.state, tc.reason) {
				t.Errorf("%s, %+v; want %s, %s %s", d.Verb, d.Entry, tc.step, tc.state, tc.reason)
			}
		})
	}
}

func TestASnapshotThatIsBrokenSaysHow(t *testing.T) {
	if e := Decide(snapshot(), here, Facts{Record: record(broken)}).Entry; !strings.Contains(e.Message, "node n1: a disk is missing") {
		t.Errorf("it says %q", e.Message)
	}
}
