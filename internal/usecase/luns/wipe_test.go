package luns

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
)

var now = time.Unix(1_000_000, 0)

var tenancy = v1alpha1.Epoch{Number: 5, ID: "tenant"}

// ended is a volume that had the disk of a number, on nodes a and b, and of which nothing is left there.
func ended(number string, change ...func(*v1alpha1.Volume)) *v1alpha1.Volume {
	v := volume("v", number)
	v.DeletionTimestamp = &metav1.Time{Time: now}
	v.Spec.Replication.Attachments.Blank, v.Spec.VolumeMode = true, v1alpha1.Block
	v.Status.Ownership = &v1alpha1.Ownership{
		Epoch: tenancy, Primary: v1alpha1.Primary{Node: "b", Phase: v1alpha1.PrimaryReleased}, Lineage: []v1alpha1.Branch{{Epoch: tenancy}},
		Keys: []v1alpha1.ReservationKey{{Node: "a", Epoch: v1alpha1.Epoch{Number: 4, ID: "x"}}, {Node: "b", Epoch: tenancy}},
	}
	for _, c := range change {
		c(v)
	}
	return v
}

func entry(node string, state v1alpha1.OwnedState) func(*v1alpha1.Volume) {
	return func(v *v1alpha1.Volume) {
		v.Status.Ownership.Replicas = append(v.Status.Ownership.Replicas, v1alpha1.OwnedReplica{Node: node, State: state})
	}
}

func phase(p v1alpha1.PrimaryPhase) func(*v1alpha1.Volume) {
	return func(v *v1alpha1.Volume) { v.Status.Ownership.Primary.Phase = p }
}

// unopened: the record names no node that ever opened an epoch.
func unopened(v *v1alpha1.Volume) { v.Status.Ownership.Primary.Node = "" }

func alive(v *v1alpha1.Volume) { v.DeletionTimestamp = nil }

func TestAWipeIsOrderedOnlyIfTheRecordProvesTheEnd(t *testing.T) {
	for name, tc := range map[string]struct {
		holder   *v1alpha1.Volume
		retained bool
		number   string // of the LUN's disk; a if empty
		state    v1alpha1.LUNState
		ordered  bool
		says     string
	}{
		"no entry is left":                      {holder: ended("a"), state: v1alpha1.LUNReleased, ordered: true},
		"all entries are gone":                  {holder: ended("a", entry("a", v1alpha1.OwnedGone)), state: v1alpha1.LUNReleased, ordered: true},
		"the last writer was fenced":            {holder: ended("a", phase(v1alpha1.PrimaryFenced)), state: v1alpha1.LUNReleased, ordered: true},
		"a node detaches":                       {holder: ended("a", entry("a", v1alpha1.OwnedGone), entry("b", v1alpha1.OwnedRemoving)), state: v1alpha1.LUNBound},
		"a node has the disk":                   {holder: ended("a", entry("a", v1alpha1.OwnedReady)), state: v1alpha1.LUNBound},
		"a node failed to attach it":            {holder: ended("a", entry("a", v1alpha1.OwnedFailed)), state: v1alpha1.LUNBound},
		"a node writes":                         {holder: ended("a", entry("b", v1alpha1.OwnedReady), phase(v1alpha1.PrimaryActive)), state: v1alpha1.LUNBound},
		"an epoch is open":                      {holder: ended("a", phase(v1alpha1.PrimaryPreparing)), state: v1alpha1.LUNBound},
		"the Volume lives":                      {holder: ended("a", alive), state: v1alpha1.LUNBound},
		"it has no record":                      {holder: ended("a", func(v *v1alpha1.Volume) { v.Status.Ownership = nil }), state: v1alpha1.LUNBound},
		"its record cannot be read":             {holder: ended("a", func(v *v1alpha1.Volume) { v.Status.Ownership.Epoch.Number = -1 }), state: v1alpha1.LUNBound},
		"the Volume has another disk":           {holder: ended("b"), state: v1alpha1.LUNAvailable},
		"the Volume is gone":                    {state: v1alpha1.LUNReleased, says: "nothing proves"},
		"the data is to be retained":            {holder: ended("a"), retained: true, state: v1alpha1.LUNReleased, says: "retained"},
		"an administrator chose the disk":       {holder: ended("a", func(v *v1alpha1.Volume) { v.Spec.Replication.Attachments.Blank = false }), state: v1alpha1.LUNReleased, says: "made by hand"},
		"a retained Volume that has not ended":  {holder: ended("a", entry("a", v1alpha1.OwnedReady)), retained: true, state: v1alpha1.LUNBound},
		"a retained Volume that is not deleted": {holder: ended("a", alive), retained: true, state: v1alpha1.LUNBound},
	} {
		t.Run(name, func(t *testing.T) {
			l := lun("a", gi, of(volume("v", "")))
			f := &Facts{Holder: tc.holder, Retained: tc.retained, LUNs: values(l), Now: now, FreshID: "fresh"}
			got := Judge(l, f)
			if got.State != tc.state || (got.Wipe != nil) != tc.ordered || !strings.Contains(got.Message, tc.says) {
				t.Fatalf("got %+v", got)
			}
			if tc.ordered && (got.Wipe.Node != "" || got.Wipe.Epoch != tenancy || got.Wipe.Outcome != "" || got.Wipe.Mode != v1alpha1.Block || len(got.Wipe.Keys) != 2 || got.Volume == nil || !Destroys(&l.Status, &got)) {
				t.Errorf("ordered is %+v of %+v", got.Wipe, got.Volume)
			}
			if tc.holder != nil && Awaits(tc.holder, values(l)) != (tc.state == v1alpha1.LUNReleased) {
				t.Error("the Volume goes before its LUN knows, or waits for ever")
			}
			if l.Status = got; tc.holder != nil && Awaits(tc.holder, values(l)) {
				t.Error("the Volume waits for a LUN that knows")
			}
		})
	}
}

// Its claim was deleted before the Volume named its disk, or before its record was begun.
func TestAVolumeThatWasNeverUsedGivesItsLUNBack(t *testing.T) {
	bare := func(v *v1alpha1.Volume) {
		v.Spec.Replication.Attachments.Persistent, v.Status.Ownership = true, nil
	}
	byHand := func(v *v1alpha1.Volume) { v.Spec.Replication.Attachments.Blank = false }
	forgetful := func(v *v1alpha1.Volume) { v.Spec.Replication.Attachments.Persistent = false }
	for name, tc := range map[string]struct {
		holder *v1alpha1.Volume
		back   bool
	}{
		"it has no disk":                           {ended("", bare), true},
		"it has no disk, and a record":             {ended(""), true},
		"it has no disk, and is not deleted":       {ended("", bare, alive), false},
		"it has no record":                         {ended("a", bare), true},
		"it has no record, and is not deleted":     {ended("a", bare, alive), false},
		"it has no record, and its target forgets": {ended("a", bare, forgetful), false},
		"it has no record, and was made by hand":   {ended("a", bare, byHand), false},
	} {
		t.Run(name, func(t *testing.T) {
			l := lun("a", gi, of(volume("v", "")))
			f := &Facts{Holder: tc.holder, Retained: true, LUNs: values(l), Volumes: values(tc.holder), Nodes: nodes("a"), Now: now, FreshID: "fresh"}
			if Awaits(tc.holder, values(l)) != tc.back {
				t.Error("the Volume goes before its LUN knows, or waits for ever")
			}
			before := l.Status
			for range 3 {
				l.Status = Judge(l, f)
			}
			if !tc.back {
				if l.Status.State != v1alpha1.LUNBound || l.Status.Wipe != nil {
					t.Errorf("the LUN is %+v", l.Status)
				}
				return
			}
			if w := l.Status.Wipe; w == nil || w.Epoch.Number < 1 || w.Mode != v1alpha1.Block || !Destroys(&before, &l.Status) || Awaits(tc.holder, values(l)) {
				t.Fatalf("while the Volume is there the LUN is %+v", l.Status)
			}
			f.Holder, f.Volumes = nil, nil
			if l.Status = Judge(l, f); l.Status.State != v1alpha1.LUNAvailable || l.Status.Volume != nil {
				t.Errorf("afterwards it is %+v", l.Status)
			}
		})
	}
}

// A node may have opened its epoch long before others came and went, and have the reservation to the end.
func TestAWipeKnowsTheKeysOfAllWriters(t *testing.T) {
	at := func(n int64) v1alpha1.Epoch { return v1alpha1.Epoch{Number: n, ID: "e"} }
	holder := ended("a", func(v *v1alpha1.Volume) {
		o := v.Status.Ownership
		v.Spec.Sharing, v.Spec.Replication.Attachments.Persistent = v1alpha1.Shared, true
		v.Spec.Replication.Factor = 1
		o.Keys = nil
		for n := range int64(8) {
			o.Keys = append(o.Keys, v1alpha1.ReservationKey{Node: "b", Epoch: at(n + 2)})
		}
		o.Epoch, o.Lineage = at(9), []v1alpha1.Branch{{Epoch: at(9)}}
		o.Writers = []v1alpha1.Writer{{Node: "a", Epoch: at(1), Phase: v1alpha1.PrimaryReleased}, {Node: "b", Epoch: at(9), Phase: v1alpha1.PrimaryReleased}}
	}, entry("a", v1alpha1.OwnedGone), entry("b", v1alpha1.OwnedGone))
	l := lun("a", gi, of(volume("v", "")))
	got := Judge(l, &Facts{Holder: holder, LUNs: values(l), Now: now, FreshID: "fresh"})
	if got.Wipe == nil || len(got.Wipe.Keys) != maxKeys {
		t.Fatalf("got %+v", got)
	}
	if keys := got.Wipe.Keys; keys[0].Node != "a" || keys[0].Epoch != at(1) || keys[maxKeys-1].Epoch != at(9) {
		t.Errorf("the keys are %+v", keys)
	}
}

// What was never written is not wiped: a LUN may name a disk by mistake.
func TestADiskThatNoNodeHasWrittenIsNotWiped(t *testing.T) {
	l := lun("a", gi, of(volume("v", "")))
	holder := ended("a", unopened, func(v *v1alpha1.Volume) { v.Spec.Replication.Attachments.Persistent = true })
	f := &Facts{Holder: holder, LUNs: values(l), Volumes: values(holder), Nodes: nodes("a"), Now: now, FreshID: "fresh"}
	for range 3 { // while the Volume is there
		if l.Status = Judge(l, f); l.Status.State != v1alpha1.LUNReleased || l.Status.Wipe.Node != "" || Awaits(holder, values(l)) {
			t.Fatalf("got %+v, %+v", l.Status, l.Status.Wipe)
		}
	}
	f.Holder, f.Volumes = nil, nil
	if l.Status = Judge(l, f); l.Status.State != v1alpha1.LUNAvailable || l.Status.Volume != nil || l.Status.Wipe != nil {
		t.Errorf("got %+v", l.Status)
	}
}

func TestALUNThatAVolumeHasSaysWhatElseNamesItsDisk(t *testing.T) {
	holder := volume("v", "a")
	twin := lun("b", gi, func(l *v1alpha1.LUN) { l.Spec.Disk = disk("a") })
	for name, tc := range map[string]struct {
		volumes []*v1alpha1.Volume
		luns    []*v1alpha1.LUN
		says    string
	}{
		"its own Volume is no dispute":        {volumes: []*v1alpha1.Volume{holder}},
		"one with another disk is none":       {volumes: []*v1alpha1.Volume{volume("w", "b")}},
		"one without a disk is none":          {volumes: []*v1alpha1.Volume{volume("w", "")}},
		"another Volume has the disk, too":    {volumes: []*v1alpha1.Volume{holder, volume("w", "a")}, says: "Volume w names this disk, too: two volumes on one disk destroy each other's data"},
		"another LUN names the disk":          {luns: []*v1alpha1.LUN{twin}, says: "LUN b names the same disk: delete it"},
		"another LUN of another disk is none": {luns: []*v1alpha1.LUN{lun("b", gi)}},
	} {
		t.Run(name, func(t *testing.T) {
			l := lun("a", gi, of(holder))
			got := Judge(l, &Facts{Holder: holder, LUNs: append(values(l), values(tc.luns...)...), Volumes: values(tc.volumes...), Now: now})
			if got.State != v1alpha1.LUNBound || got.Volume == nil || got.Volume.Name != "v" || got.Message != tc.says {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// A Volume with another disk never had this one. A Volume that an administrator made may have.
func TestALUNWhoseVolumeHasAnotherDiskGoesToTheOneThatNamesIt(t *testing.T) {
	l := lun("a", gi, of(volume("v", "")))
	got := Judge(l, &Facts{Holder: volume("v", "b"), LUNs: values(l), Volumes: values(volume("v", "b"), volume("w", "a")), Now: now})
	if got.State != v1alpha1.LUNBound || got.Volume == nil || got.Volume.Name != "w" || l.Status.Volume.Name != "v" {
		t.Errorf("got %+v, and the LUN has %+v", got, l.Status.Volume)
	}
}

func TestOnlyAWipeThatBeginsOrEndsDestroys(t *testing.T) {
	none, first, later := v1alpha1.LUNStatus{}, v1alpha1.LUNStatus{Wipe: &v1alpha1.LUNWipe{Epoch: tenancy}}, v1alpha1.LUNStatus{Wipe: &v1alpha1.LUNWipe{Epoch: v1alpha1.Epoch{Number: 6, ID: "wipe"}}}
	further := v1alpha1.LUNStatus{Wipe: &v1alpha1.LUNWipe{Epoch: tenancy, Done: 1}}
	for name, tc := range map[string]struct {
		from, to v1alpha1.LUNStatus
		want     bool
	}{
		"nothing is wiped":       {none, none, false},
		"a wipe is ordered":      {none, first, true},
		"a node is named":        {first, later, true},
		"a wipe gets further":    {first, further, false},
		"the disk is handed out": {first, none, true},
	} {
		if got := Destroys(&tc.from, &tc.to); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A Volume of the same name is not the one.
func TestAVolumeAwaitsItsOwnLUNAlone(t *testing.T) {
	v := ended("a")
	other := lun("a", gi, of(v), func(l *v1alpha1.LUN) { l.Status.Volume.UID = "another" })
	if Awaits(v, values(other)) || Awaits(v, nil) {
		t.Error("it waits for a LUN that is not its own")
	}
}

// ordered is a LUN that is to be wiped.
func ordered(change ...func(*v1alpha1.LUN)) *v1alpha1.LUN {
	l := lun("a", gi, of(volume("v", "")), func(l *v1alpha1.LUN) {
		l.Spec.Persistent = true
		l.Status.State = v1alpha1.LUNReleased
		l.Status.Wipe = &v1alpha1.LUNWipe{Epoch: tenancy, Keys: ended("a").Status.Ownership.Keys}
	})
	for _, c := range change {
		c(l)
	}
	return l
}

func on(node string, change ...func(*v1alpha1.LUNWipe)) func(*v1alpha1.LUN) {
	return func(l *v1alpha1.LUN) {
		l.Status.State, l.Status.Wipe.Node, l.Status.Wipe.Epoch = v1alpha1.LUNWiping, node, v1alpha1.Epoch{Number: 6, ID: "wipe"}
		l.Status.Wipe.Keys = append(l.Status.Wipe.Keys, v1alpha1.ReservationKey{Node: node, Epoch: l.Status.Wipe.Epoch})
		for _, c := range change {
			c(l.Status.Wipe)
		}
	}
}

func outcome(o v1alpha1.LUNWipeOutcome) func(*v1alpha1.LUNWipe) {
	return func(w *v1alpha1.LUNWipe) { w.Outcome = o }
}

func left(w *v1alpha1.LUNWipe) { w.Node = "" }

func nodes(names ...string) (out []Node) {
	for _, n := range names {
		out = append(out, Node{Name: strings.Trim(n, "-!"), Fits: !strings.HasPrefix(n, "-"), OutOfService: strings.HasSuffix(n, "!")})
	}
	return out
}

func TestAReleasedLUNBecomesFreeByItself(t *testing.T) {
	tried := func(n int32) func(*v1alpha1.LUN) {
		return func(l *v1alpha1.LUN) { l.Status.Wipe.Tries, l.Status.Wipe.Problem = n, "node a: no" }
	}
	deleted := func(l *v1alpha1.LUN) { l.DeletionTimestamp = &metav1.Time{Time: now} }
	for name, tc := range map[string]struct {
		lun     *v1alpha1.LUN
		holder  *v1alpha1.Volume
		nodes   []Node
		luns    []*v1alpha1.LUN
		volumes []*v1alpha1.Volume
		state   v1alpha1.LUNState
		node    string
		number  int64 // of the wipe's epoch; 0 without a wipe
		says    string
	}{
		"the node that had the disk last wipes it":     {lun: ordered(), nodes: nodes("a", "b", "c"), state: v1alpha1.LUNWiping, node: "b", number: 6, says: "node b wipes"},
		"or the one before":                            {lun: ordered(), nodes: nodes("a", "-b", "c"), state: v1alpha1.LUNWiping, node: "a", number: 6},
		"or any":                                       {lun: ordered(), nodes: nodes("c", "-a", "b!"), state: v1alpha1.LUNWiping, node: "c", number: 6},
		"not one that wipes another disk":              {lun: ordered(), nodes: nodes("a", "b"), luns: []*v1alpha1.LUN{lun("z", gi, func(l *v1alpha1.LUN) { l.Status.Wipe = &v1alpha1.LUNWipe{Node: "b"} })}, state: v1alpha1.LUNWiping, node: "a", number: 6},
		"without a node it waits":                      {lun: ordered(), nodes: nodes("-a", "b!"), state: v1alpha1.LUNReleased, number: 5, says: "away, cordoned"},
		"after a failure the next one by name":         {lun: ordered(on("b", left), tried(1)), nodes: nodes("a", "b", "c"), state: v1alpha1.LUNWiping, node: "c", number: 7, says: "no"},
		"and round":                                    {lun: ordered(on("c", left), tried(2)), nodes: nodes("a", "b", "c"), state: v1alpha1.LUNWiping, node: "a", number: 7},
		"by name, in whatever order nodes are listed":  {lun: ordered(on("b", left), tried(1)), nodes: nodes("d", "c", "a"), state: v1alpha1.LUNWiping, node: "c", number: 7},
		"a failure that no key tells of begins anew":   {lun: ordered(tried(1), func(l *v1alpha1.LUN) { l.Status.Wipe.Keys = nil }), nodes: nodes("b", "a"), state: v1alpha1.LUNWiping, node: "a", number: 6},
		"a free LUN keeps no node busy":                {lun: ordered(), nodes: nodes("b"), luns: []*v1alpha1.LUN{lun("free", gi)}, state: v1alpha1.LUNWiping, node: "b", number: 6},
		"its time is told":                             {lun: ordered(tried(1), func(l *v1alpha1.LUN) { l.Status.Wipe.RetryAt = &metav1.Time{Time: now.Add(time.Second)} }), nodes: nodes("a"), state: v1alpha1.LUNReleased, number: 5, says: "another node is asked to wipe the disk at 1970-01-12T13:46:41Z"},
		"not before its time":                          {lun: ordered(tried(1), func(l *v1alpha1.LUN) { l.Status.Wipe.RetryAt = &metav1.Time{Time: now.Add(time.Second)} }), nodes: nodes("a"), state: v1alpha1.LUNReleased, number: 5, says: "last attempt failed: node a: no"},
		"whatever a clock said that was ahead":         {lun: ordered(tried(1), func(l *v1alpha1.LUN) { l.Status.Wipe.RetryAt = &metav1.Time{Time: now.Add(time.Hour)} }), nodes: nodes("a"), state: v1alpha1.LUNWiping, node: "a", number: 6},
		"at its time":                                  {lun: ordered(tried(1), func(l *v1alpha1.LUN) { l.Status.Wipe.RetryAt = &metav1.Time{Time: now} }), nodes: nodes("a"), state: v1alpha1.LUNWiping, node: "a", number: 6},
		"not while a Volume names the disk":            {lun: ordered(), nodes: nodes("a"), volumes: []*v1alpha1.Volume{volume("hand", "a")}, state: v1alpha1.LUNReleased, number: 5, says: "Volume hand does"},
		"its own Volume is no reason to clear it":      {lun: ordered(), holder: ended("a"), nodes: nodes("a"), volumes: []*v1alpha1.Volume{ended("a")}, state: v1alpha1.LUNReleased, number: 5, says: "Volume v does"},
		"not while its own Volume is there":            {lun: ordered(), nodes: nodes("a"), volumes: []*v1alpha1.Volume{ended("a")}, state: v1alpha1.LUNReleased, number: 5, says: "Volume v does"},
		"not while another LUN names the disk":         {lun: ordered(), nodes: nodes("a"), luns: []*v1alpha1.LUN{lun("b", gi, func(l *v1alpha1.LUN) { l.Spec.Disk = disk("a") })}, state: v1alpha1.LUNReleased, number: 5, says: "LUN b names"},
		"not on a target that forgets":                 {lun: ordered(func(l *v1alpha1.LUN) { l.Spec.Persistent = false }), nodes: nodes("a"), state: v1alpha1.LUNReleased, number: 5, says: "spec.persistent"},
		"not if it is being deleted":                   {lun: ordered(deleted), nodes: nodes("a"), state: v1alpha1.LUNReleased, number: 5, says: "being deleted"},
		"a LUN without an order waits for a person":    {lun: ordered(func(l *v1alpha1.LUN) { l.Status.Wipe = nil }), nodes: nodes("a"), state: v1alpha1.LUNReleased, says: "blkdiscard"},
		"and keeps its reason":                         {lun: ordered(func(l *v1alpha1.LUN) { l.Status.Wipe, l.Status.Message = nil, "retained" }), nodes: nodes("a"), state: v1alpha1.LUNReleased, says: "retained"},
		"a wipe goes on":                               {lun: ordered(on("a", func(w *v1alpha1.LUNWipe) { w.Done = gi / 2 })), nodes: nodes("-a", "b"), state: v1alpha1.LUNWiping, node: "a", number: 6, says: "512Mi of 1Gi"},
		"a wipe that fails says so":                    {lun: ordered(on("a", func(w *v1alpha1.LUNWipe) { w.Problem = "broken" })), nodes: nodes("a"), state: v1alpha1.LUNWiping, node: "a", number: 6, says: "broken"},
		"a wiped disk is detached first":               {lun: ordered(on("a", outcome(v1alpha1.LUNWiped))), nodes: nodes("a"), state: v1alpha1.LUNWiping, node: "a", number: 6, says: "detaches"},
		"a cleared one, too":                           {lun: ordered(on("a", outcome(v1alpha1.LUNCleared))), nodes: nodes("a"), state: v1alpha1.LUNWiping, node: "a", number: 6},
		"also if its Volume is there again":            {lun: ordered(on("a", outcome(v1alpha1.LUNCleared))), holder: ended("a"), nodes: nodes("a"), state: v1alpha1.LUNWiping, node: "a", number: 6, says: "detaches"},
		"one whose wipe failed, too":                   {lun: ordered(on("a", outcome(v1alpha1.LUNWipeFailed))), nodes: nodes("a"), state: v1alpha1.LUNWiping, node: "a", number: 6, says: "detaches"},
		"then it is free":                              {lun: ordered(on("a", outcome(v1alpha1.LUNCleared), left)), nodes: nodes("a"), state: v1alpha1.LUNAvailable},
		"unless another LUN names the disk":            {lun: ordered(on("a", outcome(v1alpha1.LUNCleared), left)), luns: []*v1alpha1.LUN{lun("b", gi, func(l *v1alpha1.LUN) { l.Spec.Disk = disk("a") })}, state: v1alpha1.LUNUnavailable, says: "LUN b"},
		"not with the word of a failure":               {lun: ordered(on("a", outcome(v1alpha1.LUNWipeFailed), left)), nodes: nodes("a"), state: v1alpha1.LUNReleased, number: 6, says: "another node is asked"},
		"a node that is deleted is given up":           {lun: ordered(on("a")), nodes: nodes("b"), state: v1alpha1.LUNReleased, number: 6, says: "node a does not exist"},
		"so is one that is out of service":             {lun: ordered(on("a")), nodes: nodes("a!"), state: v1alpha1.LUNReleased, number: 6, says: "out of service"},
		"also if it had wiped the disk":                {lun: ordered(on("a", outcome(v1alpha1.LUNCleared))), nodes: nodes("b"), state: v1alpha1.LUNReleased, number: 6},
		"a wipe of a deleted LUN ends at its node":     {lun: ordered(on("a"), deleted), nodes: nodes("a"), state: v1alpha1.LUNWiping, node: "a", number: 6},
		"a released one that its node left in between": {lun: ordered(on("a", left), deleted), nodes: nodes("a"), state: v1alpha1.LUNReleased, number: 6, says: "being deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &Facts{Holder: tc.holder, Nodes: tc.nodes, LUNs: append(values(tc.luns...), *tc.lun), Volumes: values(tc.volumes...), Now: now, FreshID: "fresh"}
			before := tc.lun.DeepCopy()
			got := Judge(tc.lun, f)
			if got.State != tc.state || !strings.Contains(got.Message, tc.says) || (got.Wipe == nil) != (tc.number == 0) {
				t.Fatalf("got %+v with %+v", got, got.Wipe)
			}
			if w := got.Wipe; w != nil {
				if told := strings.Contains(got.Message, "last attempt failed: ") || strings.Contains(got.Message, "went wrong last: "); told != (w.Problem != "") {
					t.Errorf("of %q it says %q", w.Problem, got.Message)
				}
				if done := strings.Contains(got.Message, "are done"); done != (w.Done > 0 && w.Outcome == "") {
					t.Errorf("of %d bytes it says %q", w.Done, got.Message)
				}
				if w.Node != tc.node || w.Epoch.Number != tc.number || got.Volume == nil {
					t.Errorf("got %+v", w)
				}
				begins := w.Epoch != before.Status.Wipe.Epoch
				if last := w.Keys[len(w.Keys)-1]; begins && (w.Epoch.ID != "fresh" || last.Node != w.Node || last.Epoch != w.Epoch || w.Done != 0 || w.Outcome != "" || !Destroys(&before.Status, &got)) {
					t.Errorf("a wipe begins with %+v", w)
				}
				if w.Node == "" && w.Outcome != "" {
					t.Errorf("a node that left is remembered: %+v", w)
				}
			} else if got.State == v1alpha1.LUNAvailable && (got.Volume != nil || !Destroys(&before.Status, &got)) {
				t.Errorf("a free LUN is %+v", got)
			}
			if before.Status.Wipe != nil && (before.Status.Wipe.Node != tc.lun.Status.Wipe.Node || len(before.Status.Wipe.Keys) != len(tc.lun.Status.Wipe.Keys)) {
				t.Error("the LUN was changed in place")
			}
		})
	}
}

func TestTheNextTryIsLaterEachTime(t *testing.T) {
	for tries, want := range map[int32]time.Duration{0: 10 * time.Second, 1: 20 * time.Second, 5: 320 * time.Second, 6: 10 * time.Minute, 1000: 10 * time.Minute} {
		l := ordered(on("a", outcome(v1alpha1.LUNWipeFailed), left))
		l.Status.Wipe.Tries = tries
		got := Judge(l, &Facts{LUNs: values(l), Nodes: nodes("a"), Now: now}).Wipe
		if got.Tries != tries+1 || got.RetryAt.Sub(now) != want {
			t.Errorf("after %d tries: %d, in %v", tries, got.Tries, got.RetryAt.Sub(now))
		}
	}
}

func TestTheListOfKeysIsBounded(t *testing.T) {
	l := ordered(func(l *v1alpha1.LUN) {
		for range 20 {
			l.Status.Wipe.Keys = append(l.Status.Wipe.Keys, v1alpha1.ReservationKey{Node: "old", Epoch: tenancy})
		}
	})
	if got := Judge(l, &Facts{LUNs: values(l), Nodes: nodes("a"), Now: now, FreshID: "fresh"}).Wipe; len(got.Keys) != 8 || got.Keys[7].Node != "a" {
		t.Errorf("the keys are %+v", got.Keys)
	}
}

// No LUN that is not wiped yet is given to a volume.
func TestALUNThatIsWipedGoesToNoVolume(t *testing.T) {
	for _, l := range []*v1alpha1.LUN{ordered(), ordered(on("a")), ordered(on("a", outcome(v1alpha1.LUNCleared)))} {
		if got, why := choose(wish{poolClass: "san", bytes: 1}, values(l), nil); got != nil || !strings.Contains(why, "1 released and not wiped yet") {
			t.Errorf("%s: got %v, %q", l.Status.State, got, why)
		}
	}
}
