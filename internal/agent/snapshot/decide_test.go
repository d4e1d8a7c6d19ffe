package snapshot

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
)

func TestDecide(t *testing.T) {
	const readyState, copyingState, failedState, goneState = v1alpha1.SnapshotReady, v1alpha1.SnapshotCopying, v1alpha1.SnapshotFailed, v1alpha1.SnapshotGone
	lost := took(failedState, v1alpha1.ReasonDeviceMissing)
	tests := map[string]struct {
		snapshot *v1alpha1.Snapshot
		record   *provision.Snapshot
		step     Step
		// state and reason of the entry; empty if the node writes none.
		state  v1alpha1.SnapshotState
		reason string
		taken  bool
	}{
		"a new snapshot is taken":                                    {snapshot: snapshot(), step: StepTake},
		"a snapshot taken before a crash is reported":                {snapshot: snapshot(), record: record(), step: StepReport, state: readyState, reason: "Taken", taken: true},
		"a finished snapshot needs nothing":                          {snapshot: snapshot(saying(ready())), record: record(), step: StepNone, state: readyState, reason: "Taken", taken: true},
		"a snapshot under copy is reported":                          {snapshot: snapshot(), record: record(copying), step: StepReport, state: copyingState, reason: "Copying", taken: true},
		"a copied snapshot is ready":                                 {snapshot: snapshot(saying(took(copyingState, "Copying"))), record: record(), step: StepReport, state: readyState, reason: "Taken", taken: true},
		"a ready snapshot is never taken again":                      {snapshot: snapshot(saying(ready())), step: StepReport, state: failedState, reason: "DeviceMissing", taken: true},
		"a copied snapshot is never taken again":                     {snapshot: snapshot(saying(took(copyingState, "Copying"))), step: StepReport, state: failedState, reason: "DeviceMissing", taken: true},
		"a lost snapshot stays lost":                                 {snapshot: snapshot(saying(lost)), step: StepReport, state: failedState, reason: "DeviceMissing", taken: true},
		"a removed snapshot is never taken again":                    {snapshot: snapshot(saying(took(goneState, "Removed"))), step: StepReport, state: failedState, reason: "DeviceMissing", taken: true},
		"a snapshot that comes back is ready again":                  {snapshot: snapshot(saying(lost)), record: record(), step: StepReport, state: readyState, reason: "Taken", taken: true},
		"a broken snapshot reports when the node took the snapshot":  {snapshot: snapshot(), record: record(broken), step: StepReport, state: failedState, reason: "DeviceMissing", taken: true},
		"a snapshot refused for room is tried again":                 {snapshot: snapshot(saying(failed("NoSpace"))), step: StepTake},
		"a failed snapshot is tried again":                           {snapshot: snapshot(saying(failed("ProvisionerError"))), step: StepTake},
		"a snapshot whose volume was missing is tried again":         {snapshot: snapshot(saying(failed("SourceMissing"))), step: StepTake},
		"a snapshot whose entry says Gone after a conflict is taken": {snapshot: snapshot(saying(&v1alpha1.SnapshotReplica{Node: here, State: goneState, Reason: "Conflict"})), step: StepTake},
		"an unsupported snapshot is final":                           {snapshot: snapshot(saying(failed("Unsupported"))), step: StepNone, state: failedState, reason: "Unsupported"},
		"an invalid snapshot is final":                               {snapshot: snapshot(saying(failed("Invalid"))), step: StepNone, state: failedState, reason: "Invalid"},
		"a snapshot in conflict is final":                            {snapshot: snapshot(saying(failed("Conflict"))), step: StepNone, state: failedState, reason: "Conflict"},
		"a refused snapshot that exists is reported":                 {snapshot: snapshot(saying(failed("Invalid"))), record: record(), step: StepReport, state: readyState, reason: "Taken", taken: true},
		"a snapshot of another volume conflicts": {
			snapshot: snapshot(), record: record(func(r *provision.Snapshot) { r.Volume = "pvc-x" }), step: StepReport, state: failedState, reason: "Conflict"},
		"a snapshot in another pool conflicts": {
			snapshot: snapshot(), record: record(func(r *provision.Snapshot) { r.Pool.Name = "vg1" }), step: StepReport, state: failedState, reason: "Conflict"},
		"a snapshot taken at another time does not replace a ready snapshot": {
			snapshot: snapshot(saying(ready())), record: record(later), step: StepReport, state: failedState, reason: "Conflict", taken: true},
		"a snapshot of another size does not replace a ready snapshot": {
			snapshot: snapshot(saying(ready())), record: record(larger), step: StepReport, state: failedState, reason: "Conflict", taken: true},

		"an adopted snapshot is found":                      {snapshot: snapshot(adopted), record: record(), step: StepReport, state: readyState, reason: "Taken", taken: true},
		"an adopted snapshot is never taken":                {snapshot: snapshot(adopted), step: StepReport, state: failedState, reason: "DeviceMissing"},
		"a failed adopted snapshot is never taken":          {snapshot: snapshot(adopted, saying(failed("NoSpace"))), step: StepReport, state: failedState, reason: "DeviceMissing"},
		"an adopted snapshot that was not found stays lost": {snapshot: snapshot(adopted, saying(failed("DeviceMissing"))), step: StepReport, state: failedState, reason: "DeviceMissing"},
		"an adopted snapshot that was lost stays lost":      {snapshot: snapshot(adopted, saying(lost)), step: StepReport, state: failedState, reason: "DeviceMissing", taken: true},
		"a deleted adopted snapshot is removed":             {snapshot: snapshot(adopted, deleting, saying(ready())), record: record(), step: StepRemove},

		"a deleted snapshot is removed": {snapshot: snapshot(deleting, saying(ready())), record: record(), step: StepRemove},
		"a deleted snapshot is kept if the node has not reported the data": {
			snapshot: snapshot(deleting), record: record(), step: StepKeep, state: goneState, reason: "Conflict"},
		"a deleted snapshot is kept if the data conflicted": {
			snapshot: snapshot(deleting, saying(failed("Conflict"))), record: record(), step: StepKeep, state: goneState, reason: "Conflict"},
		"a deleted snapshot is kept if the node refused the wish as invalid": {
			snapshot: snapshot(deleting, saying(failed("Invalid"))), record: record(), step: StepKeep, state: goneState, reason: "Conflict"},
		"a deleted snapshot is kept if the data was taken at another time": {
			snapshot: snapshot(deleting, saying(ready())), record: record(later), step: StepKeep, state: goneState, reason: "Conflict", taken: true},
		"a deleted snapshot is kept if the data is in another pool": {
			snapshot: snapshot(deleting, saying(ready())), record: record(func(r *provision.Snapshot) { r.Pool.Name = "vg1" }), step: StepKeep, state: goneState, reason: "Conflict", taken: true},
		"a deleted snapshot is kept if the data is of another volume": {
			snapshot: snapshot(deleting, saying(ready())), record: record(func(r *provision.Snapshot) { r.Volume = "pvc-x" }), step: StepKeep, state: goneState, reason: "Conflict", taken: true},
		"a deleted snapshot that was lost and is back is removed":    {snapshot: snapshot(deleting, saying(lost)), record: record(), step: StepRemove},
		"a deleted snapshot is removed if an earlier removal failed": {snapshot: snapshot(deleting, saying(took(failedState, "PoolMissing"))), record: record(), step: StepRemove},
		"a snapshot in conflict that moved to another node is kept": {
			snapshot: snapshot(on("n2"), saying(failed("Conflict"))), record: record(), step: StepKeep, state: goneState, reason: "Conflict"},
		"the node answers a deletion of a snapshot that was never taken":          {snapshot: snapshot(deleting), step: StepReport, state: goneState, reason: "Removed"},
		"the node answers a deletion after the data is gone":                      {snapshot: snapshot(deleting, saying(ready())), step: StepReport, state: goneState, reason: "Removed", taken: true},
		"the node answers a deletion only once":                                   {snapshot: snapshot(deleting, saying(took(goneState, "Removed"))), step: StepNone, state: goneState, reason: "Removed", taken: true},
		"the node ignores a deletion on another node":                             {snapshot: snapshot(deleting, on("n2")), step: StepNone},
		"a snapshot that moved to another node is removed":                        {snapshot: snapshot(on("n2"), saying(ready())), record: record(), step: StepRemove},
		"a snapshot of another node is kept if this node never reported the data": {snapshot: snapshot(on("n2")), record: record(), step: StepKeep},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			before := tc.snapshot.DeepCopy()
			got := Decide(tc.snapshot, here, Facts{Record: tc.record})
			if got.Step != tc.step {
				t.Errorf("step %s; want %s", got.Step, tc.step)
			}
			if !sameState(got.Entry, tc.state, tc.reason) || got.Entry != nil && (got.Entry.Taken != nil) != tc.taken {
				t.Errorf("entry %+v; want %s, %s, taken %v", got.Entry, tc.state, tc.reason, tc.taken)
			}
			if got.Entry != nil && (got.Entry.Taken != nil) != (got.Entry.RestoreSize != nil) {
				t.Errorf("entry %+v: a time without a size", got.Entry)
			}
			if (got.Step == StepKeep) != (got.Message != "") {
				t.Errorf("message %q of step %s", got.Message, got.Step)
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
		step   Step
		state  v1alpha1.SnapshotState
		reason string
	}{
		"the pool has no record of the snapshot": {step: StepReport, state: "Failed", reason: "PoolMissing"},
		"the pool has a record of the snapshot":  {record: record(), step: StepRemove},
	} {
		t.Run(name, func(t *testing.T) {
			d := Decide(snapshot(deleting, saying(ready())), here, Facts{Record: tc.record, Lost: true})
			if d.Step != tc.step || !sameState(d.Entry, tc.state, tc.reason) {
				t.Errorf("%s, %+v; want %s, %s %s", d.Step, d.Entry, tc.step, tc.state, tc.reason)
			}
		})
	}
}

func TestASnapshotThatIsBrokenSaysHow(t *testing.T) {
	if e := Decide(snapshot(), here, Facts{Record: record(broken)}).Entry; !strings.Contains(e.Message, "node n1: a disk is missing") {
		t.Errorf("it says %q", e.Message)
	}
}

func sameState(e *v1alpha1.SnapshotReplica, state v1alpha1.SnapshotState, reason string) bool {
	if e == nil {
		return state == ""
	}
	return e.State == state && e.Reason == reason && e.Node == here
}

func TestStale(t *testing.T) {
	pool := func(free int64, records ...*provision.Snapshot) []provision.Pool {
		p := provision.Pool{PoolRef: vg0, Total: 10 * gib, Free: free, Unit: 1 << 20, Volumes: []provision.Volume{{ID: volume, Pool: vg0, Size: gib}}}
		for _, r := range records {
			p.Snapshots = append(p.Snapshots, *r)
		}
		return []provision.Pool{p}
	}
	tests := map[string]struct {
		snapshot  *v1alpha1.Snapshot
		pools     []provision.Pool
		recovered bool
		want      []string
	}{
		"a finished snapshot is left alone":                           {snapshot: snapshot(saying(ready())), pools: pool(gib, record())},
		"a lost snapshot is noticed":                                  {snapshot: snapshot(saying(ready())), pools: pool(gib), want: []string{id}},
		"an adopted snapshot that comes back is noticed":              {snapshot: snapshot(adopted, saying(failed("DeviceMissing"))), pools: pool(gib, record()), want: []string{id}},
		"the end of copying is noticed":                               {snapshot: snapshot(saying(took("Copying", "Copying"))), pools: pool(gib, record()), want: []string{id}},
		"a snapshot refused for room waits while the pool is full":    {snapshot: snapshot(saying(failed("NoSpace"))), pools: pool(gib - 1<<20)},
		"a snapshot refused for room is tried when the pool has room": {snapshot: snapshot(saying(failed("NoSpace"))), pools: pool(gib), want: []string{id}},
		"a snapshot whose volume came back is tried":                  {snapshot: snapshot(saying(failed("SourceMissing"))), pools: pool(0), want: []string{id}},
		"a snapshot whose pool is missing waits":                      {snapshot: snapshot(saying(failed("PoolMissing")))},
		"a snapshot refused for good is left alone":                   {snapshot: snapshot(saying(failed("Unsupported"))), pools: pool(9 * gib)},
		"an unfinished snapshot is left alone":                        {snapshot: snapshot(), pools: pool(9 * gib)},
		"a deleted snapshot is left alone":                            {snapshot: snapshot(deleting, saying(ready())), pools: pool(gib, record())},
		"a deletion is tried after an outage":                         {snapshot: snapshot(deleting, saying(ready())), pools: pool(gib, record()), recovered: true, want: []string{id}},
		"a failed snapshot is tried after an outage":                  {snapshot: snapshot(saying(failed("ProvisionerError"))), pools: pool(gib), recovered: true, want: []string{id}},
		"a snapshot without an object is looked at":                   {snapshot: snapshot(saying(ready())), pools: pool(gib, record(), record(func(r *provision.Snapshot) { r.ID = "snap-x" })), want: []string{"snap-x"}},
		"an invalid snapshot stays final after an outage":             {snapshot: snapshot(saying(failed("Invalid"))), pools: pool(gib), recovered: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := Stale([]v1alpha1.Snapshot{*tc.snapshot}, here, tc.pools, tc.recovered)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("stale snapshots: %s", diff)
			}
		})
	}
}
