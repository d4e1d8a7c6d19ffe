package snapshot

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/decide"
	"berth.dev/berth/internal/decide/placed"
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
		"a new snapshot is taken":                                    {snapshot: snapshot(), step: decide.Take},
		"a snapshot taken before a crash is reported":                {snapshot: snapshot(), record: record(), step: decide.Report, state: readyState, reason: "Taken", taken: true},
		"a finished snapshot needs nothing":                          {snapshot: snapshot(saying(ready())), record: record(), step: decide.None, state: readyState, reason: "Taken", taken: true},
		"a snapshot under copy is reported":                          {snapshot: snapshot(), record: record(copying), step: decide.Report, state: copyingState, reason: "Copying", taken: true},
		"a copied snapshot is ready":                                 {snapshot: snapshot(saying(took(copyingState, "Copying"))), record: record(), step: decide.Report, state: readyState, reason: "Taken", taken: true},
		"a ready snapshot is never taken again":                      {snapshot: snapshot(saying(ready())), step: decide.Report, state: failedState, reason: "DeviceMissing", taken: true},
		"a copied snapshot is never taken again":                     {snapshot: snapshot(saying(took(copyingState, "Copying"))), step: decide.Report, state: failedState, reason: "DeviceMissing", taken: true},
		"a lost snapshot stays lost":                                 {snapshot: snapshot(saying(lost)), step: decide.Report, state: failedState, reason: "DeviceMissing", taken: true},
		"a removed snapshot is never taken again":                    {snapshot: snapshot(saying(took(goneState, "Removed"))), step: decide.Report, state: failedState, reason: "DeviceMissing", taken: true},
		"a snapshot that comes back is ready again":                  {snapshot: snapshot(saying(lost)), record: record(), step: decide.Report, state: readyState, reason: "Taken", taken: true},
		"a broken snapshot reports when the node took the snapshot":  {snapshot: snapshot(), record: record(broken), step: decide.Report, state: failedState, reason: "DeviceMissing", taken: true},
		"a snapshot refused for room is tried again":                 {snapshot: snapshot(saying(failed("NoSpace"))), step: decide.Take},
		"a failed snapshot is tried again":                           {snapshot: snapshot(saying(failed("ProvisionerError"))), step: decide.Take},
		"a snapshot whose volume was missing is tried again":         {snapshot: snapshot(saying(failed("SourceMissing"))), step: decide.Take},
		"a snapshot whose entry says Gone after a conflict is taken": {snapshot: snapshot(saying(&v1alpha1.SnapshotReplica{Node: here, State: goneState, Reason: "Conflict"})), step: decide.Take},
		"an unsupported snapshot is final":                           {snapshot: snapshot(saying(failed("Unsupported"))), step: decide.None, state: failedState, reason: "Unsupported"},
		"an invalid snapshot is final":                               {snapshot: snapshot(saying(failed("Invalid"))), step: decide.None, state: failedState, reason: "Invalid"},
		"a snapshot in conflict is final":                            {snapshot: snapshot(saying(failed("Conflict"))), step: decide.None, state: failedState, reason: "Conflict"},
		"a refused snapshot that exists is reported":                 {snapshot: snapshot(saying(failed("Invalid"))), record: record(), step: decide.Report, state: readyState, reason: "Taken", taken: true},
		"a snapshot of another volume conflicts": {
			snapshot: snapshot(), record: record(func(r *provision.Snapshot) { r.Volume = "pvc-x" }), step: decide.Report, state: failedState, reason: "Conflict"},
		"a snapshot in another pool conflicts": {
			snapshot: snapshot(), record: record(func(r *provision.Snapshot) { r.Pool.Name = "vg1" }), step: decide.Report, state: failedState, reason: "Conflict"},
		"a snapshot taken at another time does not replace a ready snapshot": {
			snapshot: snapshot(saying(ready())), record: record(later), step: decide.Report, state: failedState, reason: "Conflict", taken: true},
		"a snapshot of another size does not replace a ready snapshot": {
			snapshot: snapshot(saying(ready())), record: record(larger), step: decide.Report, state: failedState, reason: "Conflict", taken: true},

		"an adopted snapshot is found":                      {snapshot: snapshot(adopted), record: record(), step: decide.Report, state: readyState, reason: "Taken", taken: true},
		"an adopted snapshot is never taken":                {snapshot: snapshot(adopted), step: decide.Report, state: failedState, reason: "DeviceMissing"},
		"a failed adopted snapshot is never taken":          {snapshot: snapshot(adopted, saying(failed("NoSpace"))), step: decide.Report, state: failedState, reason: "DeviceMissing"},
		"an adopted snapshot that was not found stays lost": {snapshot: snapshot(adopted, saying(failed("DeviceMissing"))), step: decide.Report, state: failedState, reason: "DeviceMissing"},
		"an adopted snapshot that was lost stays lost":      {snapshot: snapshot(adopted, saying(lost)), step: decide.Report, state: failedState, reason: "DeviceMissing", taken: true},
		"a deleted adopted snapshot is removed":             {snapshot: snapshot(adopted, deleting, saying(ready())), record: record(), step: decide.Remove},

		"a deleted snapshot is removed": {snapshot: snapshot(deleting, saying(ready())), record: record(), step: decide.Remove},
		"a deleted snapshot is kept if the node has not reported the data": {
			snapshot: snapshot(deleting), record: record(), step: decide.Keep, state: goneState, reason: "Conflict"},
		"a deleted snapshot is kept if the data conflicted": {
			snapshot: snapshot(deleting, saying(failed("Conflict"))), record: record(), step: decide.Keep, state: goneState, reason: "Conflict"},
		"a deleted snapshot is kept if the node refused the wish as invalid": {
			snapshot: snapshot(deleting, saying(failed("Invalid"))), record: record(), step: decide.Keep, state: goneState, reason: "Conflict"},
		"a deleted snapshot is kept if the data was taken at another time": {
			snapshot: snapshot(deleting, saying(ready())), record: record(later), step: decide.Keep, state: goneState, reason: "Conflict", taken: true},
		"a deleted snapshot is kept if the data is in another pool": {
			snapshot: snapshot(deleting, saying(ready())), record: record(func(r *provision.Snapshot) { r.Pool.Name = "vg1" }), step: decide.Keep, state: goneState, reason: "Conflict", taken: true},
		"a deleted snapshot is kept if the data is of another volume": {
			snapshot: snapshot(deleting, saying(ready())), record: record(func(r *provision.Snapshot) { r.Volume = "pvc-x" }), step: decide.Keep, state: goneState, reason: "Conflict", taken: true},
		"a deleted snapshot that was lost and is back is removed":    {snapshot: snapshot(deleting, saying(lost)), record: record(), step: decide.Remove},
		"a deleted snapshot is removed if an earlier removal failed": {snapshot: snapshot(deleting, saying(took(failedState, "PoolMissing"))), record: record(), step: decide.Remove},
		"a snapshot in conflict that moved to another node is kept": {
			snapshot: snapshot(on("n2"), saying(failed("Conflict"))), record: record(), step: decide.Keep, state: goneState, reason: "Conflict"},
		"the node answers a deletion of a snapshot that was never taken":          {snapshot: snapshot(deleting), step: decide.Report, state: goneState, reason: "Removed"},
		"the node answers a deletion after the data is gone":                      {snapshot: snapshot(deleting, saying(ready())), step: decide.Report, state: goneState, reason: "Removed", taken: true},
		"the node answers a deletion only once":                                   {snapshot: snapshot(deleting, saying(took(goneState, "Removed"))), step: decide.None, state: goneState, reason: "Removed", taken: true},
		"the node ignores a deletion on another node":                             {snapshot: snapshot(deleting, on("n2")), step: decide.None},
		"a snapshot that moved to another node is removed":                        {snapshot: snapshot(on("n2"), saying(ready())), record: record(), step: decide.Remove},
		"a snapshot of another node is kept if this node never reported the data": {snapshot: snapshot(on("n2")), record: record(), step: decide.Keep},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			before := tc.snapshot.DeepCopy()
			got := decided(tc.snapshot, here, Facts{Record: tc.record})
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

func TestASnapshotWithoutDataIsSettledWhereTheNodeHasNothingToDo(t *testing.T) {
	for name, tc := range map[string]struct {
		snapshot *v1alpha1.Snapshot
		want     bool
	}{
		"it is to be taken":               {snapshot(), false},
		"it was taken":                    {snapshot(saying(ready())), false},
		"it can never be taken":           {snapshot(saying(failed("Unsupported"))), true},
		"its data is to go":               {snapshot(deleting, saying(ready())), false},
		"its data is gone, and that said": {snapshot(deleting, saying(took(v1alpha1.SnapshotGone, "Removed"))), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Kind.Settled(placed.Look(tc.snapshot, here, Facts{})); got != tc.want {
				t.Errorf("settled is %v", got)
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
		"the pool has no record of the snapshot": {step: decide.Report, state: "Failed", reason: "PoolMissing"},
		"the pool has a record of the snapshot":  {record: record(), step: decide.Remove},
	} {
		t.Run(name, func(t *testing.T) {
			d := decided(snapshot(deleting, saying(ready())), here, Facts{Record: tc.record, Lost: true})
			if d.Verb != tc.step || !sameState(d.Entry, tc.state, tc.reason) {
				t.Errorf("%s, %+v; want %s, %s %s", d.Verb, d.Entry, tc.step, tc.state, tc.reason)
			}
		})
	}
}

func TestASnapshotThatIsBrokenSaysHow(t *testing.T) {
	if e := decided(snapshot(), here, Facts{Record: record(broken)}).Entry; !strings.Contains(e.Message, "node n1: a disk is missing") {
		t.Errorf("it says %q", e.Message)
	}
}

func TestAnEntrySaysThatTheSnapshotIsThereOrGone(t *testing.T) {
	for name, tc := range map[string]struct {
		entry      *v1alpha1.SnapshotReplica
		data, gone bool
	}{
		"there is none":             {},
		"it was taken":              {entry: ready(), data: true},
		"it was taken, and is gone": {entry: took(v1alpha1.SnapshotGone, v1alpha1.ReasonRemoved), gone: true},
		"it was never taken":        {entry: failed(v1alpha1.ReasonNoSpace)},
	} {
		t.Run(name, func(t *testing.T) {
			if _, data, gone := says(tc.entry); data != tc.data || gone != tc.gone {
				t.Errorf("data %v, gone %v", data, gone)
			}
		})
	}
}
