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
		"a new one is taken":                            {snapshot: snapshot(), step: StepTake},
		"one taken before a crash is reported":          {snapshot: snapshot(), record: record(), step: StepReport, state: readyState, reason: "Taken", taken: true},
		"one that is finished needs nothing":            {snapshot: snapshot(saying(ready())), record: record(), step: StepNone, state: readyState, reason: "Taken", taken: true},
		"one whose data is copied is said so":           {snapshot: snapshot(), record: record(copying), step: StepReport, state: copyingState, reason: "Copying", taken: true},
		"one whose data was copied is ready":            {snapshot: snapshot(saying(took(copyingState, "Copying"))), record: record(), step: StepReport, state: readyState, reason: "Taken", taken: true},
		"one that was ready is never taken again":       {snapshot: snapshot(saying(ready())), step: StepReport, state: failedState, reason: "DeviceMissing", taken: true},
		"one that was copied is never taken again":      {snapshot: snapshot(saying(took(copyingState, "Copying"))), step: StepReport, state: failedState, reason: "DeviceMissing", taken: true},
		"one that was lost stays lost":                  {snapshot: snapshot(saying(lost)), step: StepReport, state: failedState, reason: "DeviceMissing", taken: true},
		"one that was removed is never taken again":     {snapshot: snapshot(saying(took(goneState, "Removed"))), step: StepReport, state: failedState, reason: "DeviceMissing", taken: true},
		"one that comes back is ready again":            {snapshot: snapshot(saying(lost)), record: record(), step: StepReport, state: readyState, reason: "Taken", taken: true},
		"one that is broken says that it was taken":     {snapshot: snapshot(), record: record(broken), step: StepReport, state: failedState, reason: "DeviceMissing", taken: true},
		"one that found no room is tried again":         {snapshot: snapshot(saying(failed("NoSpace"))), step: StepTake},
		"one that failed is tried again":                {snapshot: snapshot(saying(failed("ProvisionerError"))), step: StepTake},
		"one whose volume was missing is tried again":   {snapshot: snapshot(saying(failed("SourceMissing"))), step: StepTake},
		"one that was kept apart elsewhere is taken":    {snapshot: snapshot(saying(&v1alpha1.SnapshotReplica{Node: here, State: goneState, Reason: "Conflict"})), step: StepTake},
		"one that is not supported is final":            {snapshot: snapshot(saying(failed("Unsupported"))), step: StepNone, state: failedState, reason: "Unsupported"},
		"one that is impossible is final":               {snapshot: snapshot(saying(failed("Invalid"))), step: StepNone, state: failedState, reason: "Invalid"},
		"one that conflicts is final":                   {snapshot: snapshot(saying(failed("Conflict"))), step: StepNone, state: failedState, reason: "Conflict"},
		"one that was refused and is there is reported": {snapshot: snapshot(saying(failed("Invalid"))), record: record(), step: StepReport, state: readyState, reason: "Taken", taken: true},
		"one of another volume conflicts": {
			snapshot: snapshot(), record: record(func(r *provision.Snapshot) { r.Volume = "pvc-x" }), step: StepReport, state: failedState, reason: "Conflict"},
		"one in another pool conflicts": {
			snapshot: snapshot(), record: record(func(r *provision.Snapshot) { r.Pool.Name = "vg1" }), step: StepReport, state: failedState, reason: "Conflict"},
		"one taken at another time does not replace it": {
			snapshot: snapshot(saying(ready())), record: record(later), step: StepReport, state: failedState, reason: "Conflict", taken: true},
		"one of another size does not replace it": {
			snapshot: snapshot(saying(ready())), record: record(larger), step: StepReport, state: failedState, reason: "Conflict", taken: true},

		"an adopted one is found":                      {snapshot: snapshot(adopted), record: record(), step: StepReport, state: readyState, reason: "Taken", taken: true},
		"an adopted one is never taken":                {snapshot: snapshot(adopted), step: StepReport, state: failedState, reason: "DeviceMissing"},
		"an adopted one that failed is never taken":    {snapshot: snapshot(adopted, saying(failed("NoSpace"))), step: StepReport, state: failedState, reason: "DeviceMissing"},
		"an adopted one that was not found stays lost": {snapshot: snapshot(adopted, saying(failed("DeviceMissing"))), step: StepReport, state: failedState, reason: "DeviceMissing"},
		"an adopted one that was lost stays lost":      {snapshot: snapshot(adopted, saying(lost)), step: StepReport, state: failedState, reason: "DeviceMissing", taken: true},
		"an adopted one that is deleted is removed":    {snapshot: snapshot(adopted, deleting, saying(ready())), record: record(), step: StepRemove},

		"one being deleted is removed": {snapshot: snapshot(deleting, saying(ready())), record: record(), step: StepRemove},
		"one being deleted of which nothing was said is kept": {
			snapshot: snapshot(deleting), record: record(), step: StepKeep, state: goneState, reason: "Conflict"},
		"one being deleted that conflicts is kept": {
			snapshot: snapshot(deleting, saying(failed("Conflict"))), record: record(), step: StepKeep, state: goneState, reason: "Conflict"},
		"one being deleted that was impossible is kept": {
			snapshot: snapshot(deleting, saying(failed("Invalid"))), record: record(), step: StepKeep, state: goneState, reason: "Conflict"},
		"one being deleted is kept if it was taken at another time": {
			snapshot: snapshot(deleting, saying(ready())), record: record(later), step: StepKeep, state: goneState, reason: "Conflict", taken: true},
		"one being deleted is kept if it is in another pool": {
			snapshot: snapshot(deleting, saying(ready())), record: record(func(r *provision.Snapshot) { r.Pool.Name = "vg1" }), step: StepKeep, state: goneState, reason: "Conflict", taken: true},
		"one being deleted is kept if it is of another volume": {
			snapshot: snapshot(deleting, saying(ready())), record: record(func(r *provision.Snapshot) { r.Volume = "pvc-x" }), step: StepKeep, state: goneState, reason: "Conflict", taken: true},
		"one being deleted that was lost and is back is removed": {snapshot: snapshot(deleting, saying(lost)), record: record(), step: StepRemove},
		"one being deleted that could not be is removed":         {snapshot: snapshot(deleting, saying(took(failedState, "PoolMissing"))), record: record(), step: StepRemove},
		"one that conflicts and is wanted elsewhere is kept": {
			snapshot: snapshot(on("n2"), saying(failed("Conflict"))), record: record(), step: StepKeep, state: goneState, reason: "Conflict"},
		"a deletion of what was never taken is answered":   {snapshot: snapshot(deleting), step: StepReport, state: goneState, reason: "Removed"},
		"a deletion is answered after it is gone":          {snapshot: snapshot(deleting, saying(ready())), step: StepReport, state: goneState, reason: "Removed", taken: true},
		"a deletion is answered once":                      {snapshot: snapshot(deleting, saying(took(goneState, "Removed"))), step: StepNone, state: goneState, reason: "Removed", taken: true},
		"a deletion elsewhere is no business of this node": {snapshot: snapshot(deleting, on("n2")), step: StepNone},
		"one that is not wanted here any more is removed":  {snapshot: snapshot(on("n2"), saying(ready())), record: record(), step: StepRemove},
		"one that the object does not know of is kept":     {snapshot: snapshot(on("n2")), record: record(), step: StepKeep},
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
		"there is no record": {step: StepReport, state: "Failed", reason: "PoolMissing"},
		"there is one":       {record: record(), step: StepRemove},
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
		"a finished one is left alone":               {snapshot: snapshot(saying(ready())), pools: pool(gib, record())},
		"a lost one is noticed":                      {snapshot: snapshot(saying(ready())), pools: pool(gib), want: []string{id}},
		"an adopted one that comes back is noticed":  {snapshot: snapshot(adopted, saying(failed("DeviceMissing"))), pools: pool(gib, record()), want: []string{id}},
		"the end of copying is noticed":              {snapshot: snapshot(saying(took("Copying", "Copying"))), pools: pool(gib, record()), want: []string{id}},
		"one that waits for room waits":              {snapshot: snapshot(saying(failed("NoSpace"))), pools: pool(gib - 1<<20)},
		"one that waited for room is tried":          {snapshot: snapshot(saying(failed("NoSpace"))), pools: pool(gib), want: []string{id}},
		"one whose volume came back is tried":        {snapshot: snapshot(saying(failed("SourceMissing"))), pools: pool(0), want: []string{id}},
		"one whose pool is missing waits":            {snapshot: snapshot(saying(failed("PoolMissing")))},
		"one that is refused for good is left alone": {snapshot: snapshot(saying(failed("Unsupported"))), pools: pool(9 * gib)},
		"one that is being taken is left alone":      {snapshot: snapshot(), pools: pool(9 * gib)},
		"one that is being deleted is left alone":    {snapshot: snapshot(deleting, saying(ready())), pools: pool(gib, record())},
		"a deletion is tried after an outage":        {snapshot: snapshot(deleting, saying(ready())), pools: pool(gib, record()), recovered: true, want: []string{id}},
		"what failed is tried after an outage":       {snapshot: snapshot(saying(failed("ProvisionerError"))), pools: pool(gib), recovered: true, want: []string{id}},
		"one that is in no object is looked at":      {snapshot: snapshot(saying(ready())), pools: pool(gib, record(), record(func(r *provision.Snapshot) { r.ID = "snap-x" })), want: []string{"snap-x"}},
		"one that is final stays so after an outage": {snapshot: snapshot(saying(failed("Invalid"))), pools: pool(gib), recovered: true},
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
