package replica

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/decide"
	"berth.dev/berth/internal/provision"
)

func TestDecide(t *testing.T) {
	tests := map[string]struct {
		volume *v1alpha1.Volume
		record *provision.Volume
		made   bool
		step   decide.Verb
		// state and reason of the entry; empty if the node writes none.
		state  v1alpha1.ReplicaState
		reason string
		format v1alpha1.FSType
	}{
		"a new volume is carved": {volume: volume(), step: decide.Create},
		"a replica carved before a crash is reported": {
			volume: volume(), record: carved(blank), step: decide.Report, state: "Ready", reason: "Carved", format: "ext4"},
		"a reported blank replica is formatted": {
			volume: volume(saying(ready("1Gi", "1Gi"))), record: carved(blank), step: decide.None, state: "Ready", reason: "Carved", format: "ext4"},
		"a block volume is never formatted": {
			volume: volume(block), record: carved(blank), made: true, step: decide.Report, state: "Ready", reason: "Carved"},
		"a finished replica needs nothing": {
			volume: volume(saying(ready("1Gi", "1Gi"))), record: carved(), step: decide.None, state: "Ready", reason: "Carved"},
		"the same size in another notation needs nothing": {
			volume: volume(saying(ready("1024Mi", "1048576Ki"))), record: carved(), step: decide.None, state: "Ready", reason: "Carved"},
		"a refused replica is tried again": {
			volume: volume(saying(failed(v1alpha1.ReasonNoSpace))), step: decide.Create},
		"a replica whose entry says Gone is carved when it is wanted again": {
			volume: volume(saying(gone())), step: decide.Create},
		"a replica that was ready is never made again": {
			volume: volume(saying(ready("1Gi", "1Gi"))), step: decide.Report, state: "Failed", reason: "DeviceMissing"},
		"a missing device stays missing": {
			volume: volume(saying(failed(v1alpha1.ReasonDeviceMissing))), step: decide.Report, state: "Failed", reason: "DeviceMissing"},
		"a device that comes back is ready again": {
			volume: volume(saying(failed(v1alpha1.ReasonDeviceMissing))), record: carved(), step: decide.Report, state: "Ready", reason: "Carved"},
		"a broken device is not ready": {
			volume: volume(saying(ready("1Gi", "1Gi"))), record: carved(func(r *provision.Volume) { r.Problem = "a physical volume is missing" }),
			step: decide.Report, state: "Failed", reason: "DeviceMissing"},
		"a replica in another pool is a conflict": {
			volume: volume(), record: carved(func(r *provision.Volume) { r.Pool.Name = "vg1" }), step: decide.Report, state: "Failed", reason: "Conflict"},
		"a replica with another filesystem is a conflict": {
			volume: volume(), record: carved(func(r *provision.Volume) { r.Filesystem = provision.XFS }), step: decide.Report, state: "Failed", reason: "Conflict"},
		"an adopted volume is found": {
			volume: volume(adopted), record: carved(), step: decide.Report, state: "Ready", reason: "Carved"},
		"an adopted volume is never made": {
			volume: volume(adopted), step: decide.Report, state: "Failed", reason: "DeviceMissing"},
		"an adopted volume is never formatted": {
			volume: volume(adopted), record: carved(blank), step: decide.Report, state: "Failed", reason: "Conflict"},
		"an adopted block volume has no filesystem": {
			volume: volume(adopted, block), record: carved(blank), step: decide.Report, state: "Ready", reason: "Carved"},
		"an adopted block volume that a pod had is found": {
			volume: volume(adopted, block), record: carved(bears(provision.Raw)), step: decide.Report, state: "Ready", reason: "Carved"},
		"an adopted volume that a pod had as a block volume is never formatted": {
			volume: volume(adopted), record: carved(bears(provision.Raw)), step: decide.Report, state: "Failed", reason: "Conflict"},
		"a copy of a block volume that a pod had is ready": {
			volume: volume(restored, block), record: carved(fromSnapshot, bears(provision.Raw)), made: true, step: decide.Report, state: "Ready", reason: "Carved"},
		"an adopted volume that is placed elsewhere is kept though nothing was formatted": {
			volume: volume(adopted, on("n2")), record: carved(blank), step: decide.Keep},
		"a larger wish expands": {
			volume: volume(of("2Gi"), saying(ready("1Gi", "1Gi"))), record: carved(), step: decide.Expand},
		"a replica carved before a crash expands": {
			volume: volume(of("2Gi")), record: carved(blank), step: decide.Expand},
		"the carved size meets a wish whose expansion was taken back": {
			volume: volume(saying(ready("1Gi", "5Gi"))), record: carved(), step: decide.Report, state: "Ready", reason: "Carved"},
		"an extent more than the wish is ready": {
			volume: volume(), record: carved(blank, sized(gib+4<<20)), step: decide.Report, state: "Ready", reason: "Carved", format: "ext4"},

		"a copy under way is reported": {
			volume: volume(restored), record: carved(fromSnapshot, copying), step: decide.Report, state: "Copying", reason: "Copying"},
		"a copy under way is reported once": {
			volume: volume(restored, saying(copyUnderWay())), record: carved(fromSnapshot, copying), step: decide.None, state: "Copying", reason: "Copying"},
		"a copy that is finished is ready": {
			volume: volume(restored, saying(copyUnderWay())), record: carved(fromSnapshot), step: decide.Report, state: "Ready", reason: "Carved"},
		"a copy under way is neither expanded nor formatted": {
			volume: volume(restored, of("2Gi")), record: carved(fromSnapshot, copying, blank), step: decide.Report, state: "Copying", reason: "Copying"},
		"a copy of a formatted source is not formatted": {
			volume: volume(restored), record: carved(fromSnapshot), made: true, step: decide.Report, state: "Ready", reason: "Carved"},
		"a copy of a blank source is formatted": {
			volume: volume(restored), record: carved(fromSnapshot, blank), step: decide.Report, state: "Ready", reason: "Carved", format: "ext4"},
		"an unfinished copy that was lost is made again": {
			volume: volume(restored, saying(copyUnderWay())), step: decide.Create},
		"a finished copy that was lost is not made again": {
			volume: volume(restored, saying(ready("1Gi", "1Gi"))), step: decide.Report, state: "Failed", reason: "DeviceMissing"},
		"a volume without a source does not accept a copy": {
			volume: volume(), record: carved(fromSnapshot), step: decide.Report, state: "Failed", reason: "Conflict"},
		"a volume with a source does not accept an ordinary replica": {
			volume: volume(restored), record: carved(), step: decide.Report, state: "Failed", reason: "Conflict"},
		"a broken copy is broken, finished or not": {
			volume: volume(restored), record: carved(fromSnapshot, copying, func(r *provision.Volume) { r.Problem = "a disk is missing" }),
			step: decide.Report, state: "Failed", reason: "DeviceMissing"},
		"an unfinished copy that is not wanted here is removed": {
			volume: volume(restored, on("n2")), record: carved(fromSnapshot, copying), step: decide.Remove},

		"a deleted volume loses the data": {
			volume: volume(deleting, saying(ready("1Gi", "1Gi"))), record: carved(), step: decide.Remove},
		"a volume that is deleted before its first report and format goes": {
			volume: volume(deleting), record: carved(blank), step: decide.Remove},
		"the node answers a deletion though nothing was carved": {
			volume: volume(deleting), step: decide.Report, state: "Gone", reason: "Removed"},
		"the node answers a deletion after the data is gone": {
			volume: volume(deleting, saying(ready("1Gi", "1Gi"))), step: decide.Report, state: "Gone", reason: "Removed"},
		"the node answers a deletion only once": {
			volume: volume(deleting, saying(gone())), step: decide.None, state: "Gone", reason: "Removed"},
		"the node ignores a deletion on another node": {
			volume: volume(deleting, on("n2")), step: decide.None},
		"a reservation that moved away is removed": {
			volume: volume(marked, on("n2"), saying(ready("1Gi", "1Gi"))), record: carved(blank), step: decide.Remove},
		"a volume that CreateVolume may have returned is kept though the volume moved away": {
			volume: volume(on("n2"), saying(ready("1Gi", "1Gi"))), record: carved(), step: decide.Keep, state: "Gone", reason: "Conflict"},
		"a volume that moved away is kept also when the volume is deleted": {
			volume: volume(deleting, on("n2"), saying(ready("1Gi", "1Gi"))), record: carved(), step: decide.Keep, state: "Gone", reason: "Conflict"},
		"a replica that moved away and is gone is reported": {
			volume: volume(on("n2"), saying(failed(v1alpha1.ReasonNoSpace))), step: decide.Report, state: "Gone", reason: "Removed"},
		"a replica that moved away before the first report and the format is removed": {
			volume: volume(on("n2")), record: carved(blank), step: decide.Remove},
		"data that the object does not know of is kept": {
			volume: volume(on("n2")), record: carved(), step: decide.Keep},
		"a block device that the object does not know of is kept": {
			volume: volume(block, on("n2")), record: carved(blank), step: decide.Keep},
		"a copy of several is not made": {volume: volume(copied), step: decide.None},
		"a standby, which cannot be mounted, is not called broken": {
			volume: volume(copied), record: carved(func(r *provision.Volume) { r.Problem = "it is a copy that is not open for writing" }), step: decide.None},
		"a blank copy of several is not removed though the spec does not list it": {
			volume: volume(copied, on("n2")), record: carved(blank), made: true, step: decide.None},
		"a copy of several is not removed with its volume": {
			volume: volume(copied, deleting, saying(ready("1Gi", "1Gi"))), record: carved(), step: decide.None},
		"a copy of several is neither expanded nor formatted": {
			volume: volume(copied, of("2Gi")), record: carved(blank), step: decide.None},
		"the node ignores a volume of another node": {
			volume: volume(on("n2")), step: decide.None},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			before := tc.volume.DeepCopy()
			got := decided(tc.volume, here, Facts{Record: tc.record, Made: tc.made})
			if got.Verb != tc.step || got.Format.Filesystem != string(tc.format) {
				t.Errorf("step %s, format %q; want %s, %q", got.Verb, got.Format.Filesystem, tc.step, tc.format)
			}
			if !sameState(got.Entry, tc.state, tc.reason) {
				t.Errorf("entry %+v; want %s, %s", got.Entry, tc.state, tc.reason)
			}
			if got.Verb == decide.Keep && got.Message == "" {
				t.Errorf("message %q of step %s", got.Message, got.Verb)
			}
			if diff := cmp.Diff(before, tc.volume); diff != "" {
				t.Errorf("the volume was changed: %s", diff)
			}
		})
	}
}

func TestOnlyDataWithoutARecordIsLostWithItsPool(t *testing.T) {
	for name, tc := range map[string]struct {
		record *provision.Volume
		step   decide.Verb
		state  v1alpha1.ReplicaState
		reason string
	}{
		"the pool has no record of the data": {step: decide.Report, state: "Failed", reason: "PoolMissing"},
		"the pool has a record of the data":  {record: carved(), step: decide.Remove},
	} {
		t.Run(name, func(t *testing.T) {
			d := decided(volume(deleting, saying(ready("1Gi", "1Gi"))), here, Facts{Record: tc.record, Lost: true})
			if d.Verb != tc.step || !sameState(d.Entry, tc.state, tc.reason) {
				t.Errorf("%s, %+v; want %s, %s %s", d.Verb, d.Entry, tc.step, tc.state, tc.reason)
			}
		})
	}
}

func TestAConflictOfSourcesNamesBoth(t *testing.T) {
	copied := func(v *v1alpha1.Volume) { v.Spec.Source = &v1alpha1.VolumeSource{Volume: original} }
	fromVolume := func(r *provision.Volume) { r.Source = provision.Source{Volume: original} }
	for name, tc := range map[string]struct {
		volume *v1alpha1.Volume
		record *provision.Volume
		want   string
	}{
		"a volume without a source finds a copy of a snapshot": {volume(), carved(fromSnapshot), "made from snapshot " + source + ", not from nothing"},
		"a volume without a source finds a copy of a volume":   {volume(), carved(fromVolume), "made from volume " + original + ", not from nothing"},
		"a copy of a volume finds data without a source":       {volume(copied), carved(), "made from nothing, not from volume " + original},
		"a copy of a snapshot finds a copy of a volume":        {volume(restored), carved(fromVolume), "made from volume " + original + ", not from snapshot " + source},
	} {
		t.Run(name, func(t *testing.T) {
			if e := decided(tc.volume, here, Facts{Record: tc.record}).Entry; e.Reason != v1alpha1.ReasonConflict || !strings.Contains(e.Message, tc.want) {
				t.Errorf("%s: %s", e.Reason, e.Message)
			}
		})
	}
}

func TestAnUnusableReplicaReportsItsSizeInTheRequestedPool(t *testing.T) {
	broken := func(r *provision.Volume) { r.Problem = "a physical volume is missing" }
	for name, tc := range map[string]struct {
		record *provision.Volume
		want   int64
	}{
		"a broken replica":                  {carved(broken), gib},
		"a replica with another filesystem": {carved(func(r *provision.Volume) { r.Filesystem = provision.XFS }), gib},
		"a replica in another pool":         {carved(func(r *provision.Volume) { r.Pool.Name = "vg1" }), 0},
		"a lost replica":                    {nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			e := decided(volume(saying(ready("1Gi", "1Gi"))), "n1", Facts{Record: tc.record}).Entry
			if e.State != v1alpha1.ReplicaFailed || entrySize(e) != tc.want {
				t.Errorf("the entry is %+v, want it to say that %d bytes are taken", e, tc.want)
			}
		})
	}
}

func entrySize(e *v1alpha1.ReplicaStatus) int64 {
	if e.Allocated == nil {
		return 0
	}
	return e.Allocated.Value()
}

func TestTheSourceOfAVolumeIsNamed(t *testing.T) {
	for want, source := range map[string]provision.Source{
		"snapshot snap-1": {Snapshot: "snap-1"}, "volume pvc-1": {Volume: "pvc-1"}, "nothing": {},
	} {
		if got := nameOf(source); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
