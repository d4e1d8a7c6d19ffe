package replica

import (
	"strings"
	"testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/decide"
	"berth.dev/berth/internal/provision"
)

func TestDataGoesOnlyWhereTheEntryProvesThatItIsTheObjects(t *testing.T) {
	for name, tc := range map[string]struct {
		entry  *v1alpha1.ReplicaStatus // nil for none
		facts  Facts
		change []option
		goes   bool
		stays  bool // where the node was taken out of the spec
	}{
		"ready": {entry: ready("1Gi", "1Gi"), facts: Facts{Record: carved()}, goes: true, stays: true},
		"the node found the data, and a pod has used the data since": {entry: because(v1alpha1.ReasonFound), facts: Facts{Record: carved()}, goes: true, stays: true},
		"a copy under way":                                   {entry: copyUnderWay(), facts: Facts{Record: carved(fromSnapshot, copying)}, change: []option{restored}, goes: true},
		"the device was missing, and is back":                {entry: failed(v1alpha1.ReasonDeviceMissing), facts: Facts{Record: carved()}, goes: true, stays: true},
		"the node could not remove the data before":          {entry: stuck(v1alpha1.ReasonInUse), facts: Facts{Record: carved()}, goes: true, stays: true},
		"the pool of the data was away, and is back":         {entry: stuck(v1alpha1.ReasonPoolMissing), facts: Facts{Record: carved()}, goes: true, stays: true},
		"a reservation of a copy":                            {entry: ready("1Gi", "1Gi"), facts: Facts{Record: carved(fromSnapshot)}, change: []option{marked, restored}, goes: true},
		"no filesystem was ever made":                        {facts: Facts{Record: carved(blank)}, goes: true},
		"an unfinished copy without an entry":                {facts: Facts{Record: carved(fromSnapshot, copying)}, change: []option{restored}, goes: true},
		"this process just made the block volume":            {facts: Facts{Record: carved(blank), Made: true}, change: []option{block}, goes: true},
		"this process made the block volume after a timeout": {entry: failed(v1alpha1.ReasonProvisionerError), facts: Facts{Record: carved(blank), Made: true}, change: []option{block}, goes: true},

		"the node has not reported the data":              {facts: Facts{Record: carved()}},
		"the node has not reported the block volume":      {facts: Facts{Record: carved(blank)}, change: []option{block}},
		"the node has not reported the copy":              {facts: Facts{Record: carved(fromSnapshot)}, change: []option{restored}},
		"the data is in another pool than the entry says": {entry: ready("1Gi", "1Gi"), facts: Facts{Record: carved(inPool("vg1"))}},
		"a conflict":                                     {entry: failed(v1alpha1.ReasonConflict), facts: Facts{Record: carved()}},
		"a conflict of a block volume":                   {entry: failed(v1alpha1.ReasonConflict), facts: Facts{Record: carved(blank)}, change: []option{block}},
		"the pool was missing":                           {entry: failed(v1alpha1.ReasonPoolMissing), facts: Facts{Record: carved()}},
		"there was no room":                              {entry: failed(v1alpha1.ReasonNoSpace), facts: Facts{Record: carved()}},
		"the provisioner failed":                         {entry: failed(v1alpha1.ReasonProvisionerError), facts: Facts{Record: carved()}},
		"the entry says that the data is gone":           {entry: gone(), facts: Facts{Record: carved()}},
		"the node has not reported the adopted volume":   {facts: Facts{Record: carved(blank)}, change: []option{adopted}},
		"the filesystem of the data cannot be read":      {facts: Facts{Record: carved(blank, broken)}},
		"a reservation with a filesystem":                {entry: ready("1Gi", "1Gi"), facts: Facts{Record: carved()}, change: []option{marked}},
		"the node found the data of a block reservation": {entry: because(v1alpha1.ReasonFound), facts: Facts{Record: carved(blank)}, change: []option{marked, block}},
		"a blank reservation":                            {entry: ready("1Gi", "1Gi"), facts: Facts{Record: carved(blank)}, change: []option{marked}, goes: true},
		"a block reservation that a pod had":             {entry: ready("1Gi", "1Gi"), facts: Facts{Record: carved(bears(provision.Raw))}, change: []option{marked, block}},
		"a blank block reservation":                      {entry: ready("1Gi", "1Gi"), facts: Facts{Record: carved(blank)}, change: []option{marked, block}, goes: true},
	} {
		for how, unwanted := range map[string]option{"deleted": deleting, "moved away": on("n2")} {
			t.Run(name+", "+how, func(t *testing.T) {
				v := volume(tc.change...)
				if tc.entry != nil {
					saying(tc.entry)(v)
				}
				unwanted(v)
				d := decided(v, here, tc.facts)
				goes := tc.goes && !(tc.stays && how == "moved away")
				if (d.Verb == decide.Remove) != goes || !goes && d.Verb != decide.Keep {
					t.Fatalf("step %s, goes should be %v", d.Verb, goes)
				}
				if goes {
					return
				}
				if !strings.Contains(d.Message, "kubectl berth adopt n1 "+id) {
					t.Errorf("the message %q does not say what to do", d.Message)
				}
				owed := tc.entry != nil || how == "deleted"
				if owed != (d.Entry != nil) || owed && !sameState(d.Entry, v1alpha1.ReplicaGone, v1alpha1.ReasonConflict) {
					t.Errorf("entry %+v: the object is to go without the data", d.Entry)
				}
			})
		}
	}
}

func TestFoundReplicasAreToldApartFromMadeOnes(t *testing.T) {
	for name, tc := range map[string]struct {
		entry  *v1alpha1.ReplicaStatus
		facts  Facts
		change []option
		step   decide.Verb
		state  v1alpha1.ReplicaState
		reason string
	}{
		"data that the node has not reported":                        {facts: Facts{Record: carved()}, state: "Ready", reason: "Found"},
		"data in a pool that had no room before":                     {entry: failed(v1alpha1.ReasonNoSpace), facts: Facts{Record: carved()}, state: "Ready", reason: "Found"},
		"data that was a conflict before":                            {entry: failed(v1alpha1.ReasonConflict), facts: Facts{Record: carved()}, state: "Ready", reason: "Found"},
		"a copy":                                                     {facts: Facts{Record: carved(fromSnapshot)}, change: []option{restored}, state: "Ready", reason: "Found"},
		"a block volume":                                             {facts: Facts{Record: carved(blank)}, change: []option{block}, state: "Ready", reason: "Found"},
		"a block volume that this process made":                      {facts: Facts{Record: carved(blank), Made: true}, change: []option{block}, state: "Ready", reason: "Carved"},
		"a blank volume":                                             {facts: Facts{Record: carved(blank)}, state: "Ready", reason: "Carved"},
		"an adopted volume":                                          {facts: Facts{Record: carved()}, change: []option{adopted}, state: "Ready", reason: "Carved"},
		"the node had reported the data as found":                    {entry: because(v1alpha1.ReasonFound), facts: Facts{Record: carved()}, state: "Ready", reason: "Found"},
		"the node had reported the data as made":                     {entry: ready("1Gi", "1Gi"), facts: Facts{Record: carved()}, step: decide.None, state: "Ready", reason: "Carved"},
		"a reservation with a filesystem":                            {entry: ready("1Gi", "1Gi"), facts: Facts{Record: carved()}, change: []option{marked}, state: "Ready", reason: "Found"},
		"a reservation of a copy, with a filesystem":                 {entry: ready("1Gi", "1Gi"), facts: Facts{Record: carved(fromSnapshot)}, change: []option{marked, restored}, step: decide.None, state: "Ready", reason: "Carved"},
		"a block reservation that a pod had":                         {entry: ready("1Gi", "1Gi"), facts: Facts{Record: carved(bears(provision.Raw))}, change: []option{marked, block}, state: "Ready", reason: "Found"},
		"a block volume that a pod had":                              {entry: ready("1Gi", "1Gi"), facts: Facts{Record: carved(bears(provision.Raw))}, change: []option{block}, step: decide.None, state: "Ready", reason: "Carved"},
		"a filesystem volume whose data a pod had as a block device": {facts: Facts{Record: carved(bears(provision.Raw))}, state: "Failed", reason: "Conflict"},
		"data that is too small":                                     {facts: Facts{Record: carved()}, change: []option{of("2Gi")}, state: "Failed", reason: "Conflict"},
		"data that cannot be used":                                   {facts: Facts{Record: carved(broken)}, state: "Failed", reason: "Conflict"},
		"data that the node found and cannot use any more":           {entry: because(v1alpha1.ReasonFound), facts: Facts{Record: carved(broken)}, state: "Failed", reason: "Conflict"},
		"data that cannot be read":                                   {facts: Facts{Record: carved(blank, broken)}, state: "Failed", reason: "Conflict"},
		"data in another pool":                                       {facts: Facts{Record: carved(inPool("vg1"))}, state: "Failed", reason: "Conflict"},
		"a block volume in another pool":                             {facts: Facts{Record: carved(blank, inPool("vg1"))}, change: []option{block}, state: "Failed", reason: "Conflict"},
		"found data grows":                                           {entry: because(v1alpha1.ReasonFound), facts: Facts{Record: carved()}, change: []option{of("2Gi")}, step: decide.Expand},
	} {
		t.Run(name, func(t *testing.T) {
			v := volume(tc.change...)
			if tc.entry != nil {
				saying(tc.entry)(v)
			}
			if tc.step == "" {
				tc.step = decide.Report
			}
			d := decided(v, here, tc.facts)
			if d.Verb != tc.step || !sameState(d.Entry, tc.state, tc.reason) {
				t.Errorf("%s, %+v; want %s, %s %s", d.Verb, d.Entry, tc.step, tc.state, tc.reason)
			}
			if tc.reason == v1alpha1.ReasonConflict && !strings.Contains(d.Entry.Message, "kubectl berth adopt n1 "+id) {
				t.Errorf("the message %q does not say what to do", d.Entry.Message)
			}
			if tc.reason == v1alpha1.ReasonFound && d.Format.Filesystem != "" {
				t.Error("what was found is formatted")
			}
		})
	}
}

func TestAReservationIsNotFormatted(t *testing.T) {
	if d := decided(volume(marked), here, Facts{Record: carved(blank)}); d.Format.Filesystem != "" {
		t.Error("it is, and then nobody can tell whether it was handed out")
	}
	if d := decided(volume(saying(ready("1Gi", "1Gi"))), here, Facts{Record: carved(blank)}); d.Format.Filesystem != provision.Ext4 {
		t.Error("it is not when it was published")
	}
}
