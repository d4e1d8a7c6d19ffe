package gone

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/decide"
	"berth.dev/berth/internal/decide/gone/gonetest"
)

const (
	yes     = metav1.ConditionTrue
	no      = metav1.ConditionFalse
	unknown = metav1.ConditionUnknown
)

func TestDecide(t *testing.T) {
	ephemeral := func(f *Facts) {
		f.Claim.OwnerReferences = []metav1.OwnerReference{{Kind: "Pod", Name: "web", Controller: new(true)}}
	}
	classless := func(f *Facts) { f.Class = nil }
	silent := func(f *Facts) { f.Class.Spec.OnNodeGone = nil }
	undelayed := func(f *Facts) { f.Class.Spec.OnNodeGone.After = nil }
	ofSet := func(f *Facts) {
		f.Claim.OwnerReferences = []metav1.OwnerReference{{Kind: "StatefulSet", Name: "db", Controller: new(true)}}
	}
	unexported := func(f *Facts) { f.PersistentVolume, f.Claim = nil, nil }
	goingPV := func(f *Facts) { f.PersistentVolume.DeletionTimestamp = &metav1.Time{Time: start} }
	elsewhere := func(f *Facts) { f.Claim.Spec.VolumeName = "another" }
	copied := func(f *Facts) {
		f.Volume.Spec.Replicas = append(f.Volume.Spec.Replicas, v1alpha1.ReplicaSpec{Node: "n2", Pool: "vg0"})
	}
	moving := func(f *Facts) {
		f.Volume.Status.Replicas = append(f.Volume.Status.Replicas, v1alpha1.ReplicaStatus{Node: "n2", State: v1alpha1.ReplicaReady})
	}
	left := func(f *Facts) {
		f.Volume.Status.Replicas = append(f.Volume.Status.Replicas, v1alpha1.ReplicaStatus{Node: "n2", State: v1alpha1.ReplicaGone})
	}
	replicated := func(f *Facts) { f.Volume.Spec.Replication.Factor = 2 }
	deleted := func(f *Facts) { f.Volume.DeletionTimestamp = &metav1.Time{Time: start} }
	slower := func(f *Facts) { f.Class.Spec.OnNodeGone.After.Duration = 2 * hour }
	jumped := func(f *Facts) { f.Now = start.Add(1000 * hour) }
	back := func(f *Facts) { f.Now = start.Add(-hour) }
	all := func(options ...option) []option { return options }
	for name, tc := range map[string]struct {
		given []option
		want  Answer // without its message
	}{
		"the count begins":                                                {given: nil, want: Answer{Decision: decide.Decision{Verb: Mark, Reason: v1alpha1.ReasonReleasePending}, Status: yes, Tell: true}},
		"the count goes on":                                               {given: all(says(yes, v1alpha1.ReasonReleasePending), after(hour/2)), want: Answer{Decision: decide.Decision{Verb: decide.None, Reason: v1alpha1.ReasonReleasePending}, Status: yes, Again: hour / 2}},
		"a jump of the clock releases no claim":                           {given: all(says(yes, v1alpha1.ReasonReleasePending), after(time.Minute), jumped), want: Answer{Decision: decide.Decision{Verb: decide.None, Reason: v1alpha1.ReasonReleasePending}, Status: yes, Again: hour - time.Minute}},
		"a clock that was set back keeps longer":                          {given: all(says(yes, v1alpha1.ReasonReleasePending), after(2*hour), back), want: Answer{Decision: decide.Decision{Verb: decide.None, Reason: v1alpha1.ReasonReleasePending}, Status: yes, Again: 2 * hour}},
		"a restarted process waits first":                                 {given: all(says(yes, v1alpha1.ReasonReleasePending), after(hour), restarted(0)), want: Answer{Decision: decide.Decision{Verb: decide.None, Reason: v1alpha1.ReasonReleasePending}, Status: yes, Again: Settle}},
		"a restarted process goes on when the mark is due":                {given: all(says(yes, v1alpha1.ReasonReleasePending), after(hour), restarted(Settle)), want: Answer{Decision: decide.Decision{Verb: Retain, Reason: v1alpha1.ReasonReleasingClaim}}},
		"a restarted process waits until the mark is due":                 {given: all(says(yes, v1alpha1.ReasonReleasePending), after(hour-time.Second), restarted(Settle)), want: Answer{Decision: decide.Decision{Verb: decide.None, Reason: v1alpha1.ReasonReleasePending}, Status: yes, Again: time.Second}},
		"a longer delay prolongs the wait":                                {given: all(says(yes, v1alpha1.ReasonReleasePending), after(hour), slower), want: Answer{Decision: decide.Decision{Verb: Mark, Reason: v1alpha1.ReasonReleasePending}, Status: yes, Again: hour}},
		"a class without a delay waits for an hour":                       {given: all(undelayed, says(yes, v1alpha1.ReasonReleasePending), after(hour/2)), want: Answer{Decision: decide.Decision{Verb: decide.None, Reason: v1alpha1.ReasonReleasePending}, Status: yes, Again: hour / 2}},
		"a class that changed to release begins to count":                 {given: all(says(yes, v1alpha1.ReasonClaimKept), after(hour/2)), want: Answer{Decision: decide.Decision{Verb: Mark, Reason: v1alpha1.ReasonReleasePending}, Status: yes, Tell: true}},
		"a class that changed to release begins to count even after days": {given: all(says(yes, v1alpha1.ReasonClaimKept), after(100*hour)), want: Answer{Decision: decide.Decision{Verb: Mark, Reason: v1alpha1.ReasonReleasePending}, Status: yes, Tell: true}},

		"the release first retains the PersistentVolume":                                {given: all(says(yes, v1alpha1.ReasonReleasePending), after(hour)), want: Answer{Decision: decide.Decision{Verb: Retain, Reason: v1alpha1.ReasonReleasingClaim}}},
		"then the release marks the volume":                                             {given: all(says(yes, v1alpha1.ReasonReleasePending), after(hour), retained), want: Answer{Decision: decide.Decision{Verb: Mark, Reason: v1alpha1.ReasonReleasingClaim}, Status: yes}},
		"then the release deletes the claim":                                            {given: all(says(yes, v1alpha1.ReasonReleasingClaim), after(hour), retained), want: Answer{Decision: decide.Decision{Verb: Delete, Reason: v1alpha1.ReasonReleasingClaim}}},
		"the release retains the PersistentVolume again if the policy was changed back": {given: all(says(yes, v1alpha1.ReasonReleasingClaim), after(hour)), want: Answer{Decision: decide.Decision{Verb: Retain, Reason: v1alpha1.ReasonReleasingClaim}}},
		"the release waits for pods that use the claim":                                 {given: all(says(yes, v1alpha1.ReasonReleasingClaim), after(hour), retained, deletedClaim), want: Answer{Decision: decide.Decision{Verb: decide.None, Reason: v1alpha1.ReasonReleasingClaim}, Again: LookAgain}},
		"then the release marks the claim as released":                                  {given: all(says(yes, v1alpha1.ReasonReleasingClaim), after(hour), retained, unclaimed), want: Answer{Decision: decide.Decision{Verb: Mark, Reason: v1alpha1.ReasonClaimReleased}, Status: yes, Tell: true}},
		"a finished release needs nothing":                                              {given: all(says(yes, v1alpha1.ReasonClaimReleased), after(2*hour), retained, unclaimed), want: Answer{Decision: decide.Decision{Verb: decide.None, Reason: v1alpha1.ReasonClaimReleased}}},
		"a claim that binds the volume again is left alone":                             {given: all(says(yes, v1alpha1.ReasonClaimReleased), after(2*hour), retained), want: Answer{Decision: decide.Decision{Verb: decide.None, Reason: v1alpha1.ReasonClaimReleased}}},
		"a process restarted during the release waits":                                  {given: all(says(yes, v1alpha1.ReasonReleasingClaim), after(hour), retained, restarted(0)), want: Answer{Decision: decide.Decision{Verb: Mark, Reason: v1alpha1.ReasonReleasePending}, Status: yes, Tell: true, Again: Settle}},

		"a node that was not gone":                      {given: all(present), want: Answer{Decision: decide.Decision{Verb: decide.None}}},
		"a node that returns in time":                   {given: all(says(yes, v1alpha1.ReasonReleasePending), after(hour), present), want: Answer{Decision: decide.Decision{Verb: Mark, Reason: v1alpha1.ReasonNodeReturned}, Status: no}},
		"a node that returned":                          {given: all(says(no, v1alpha1.ReasonNodeReturned), after(hour), present), want: Answer{Decision: decide.Decision{Verb: decide.None}}},
		"a node that goes again":                        {given: all(says(no, v1alpha1.ReasonNodeReturned), after(hour)), want: Answer{Decision: decide.Decision{Verb: Mark, Reason: v1alpha1.ReasonReleasePending}, Status: yes, Tell: true}},
		"a node that returns before the claim goes":     {given: all(says(yes, v1alpha1.ReasonReleasingClaim), after(hour), retained, present), want: Answer{Decision: decide.Decision{Verb: Mark, Reason: v1alpha1.ReasonNodeReturned}, Status: no}},
		"a node that returns while the claim goes":      {given: all(says(yes, v1alpha1.ReasonReleasingClaim), after(hour), retained, deletedClaim, present), want: Answer{Decision: decide.Decision{Verb: decide.None, Reason: v1alpha1.ReasonReleasingClaim}, Again: LookAgain}},
		"a node that returns when the claim has gone":   {given: all(says(yes, v1alpha1.ReasonReleasingClaim), after(hour), retained, unclaimed, present), want: Answer{Decision: decide.Decision{Verb: Mark, Reason: v1alpha1.ReasonClaimReleased}, Status: yes, Tell: true}},
		"a node that returns too late":                  {given: all(says(yes, v1alpha1.ReasonClaimReleased), after(2*hour), retained, unclaimed, present), want: Answer{Decision: decide.Decision{Verb: Mark, Reason: v1alpha1.ReasonNodeReturned}, Status: no, Tell: true}},
		"a node returns after too many nodes were gone": {given: all(says(unknown, v1alpha1.ReasonTooManyNodesGone), after(hour), present), want: Answer{Decision: decide.Decision{Verb: Mark, Reason: v1alpha1.ReasonNodeReturned}, Status: no}},

		"too many nodes are gone":                            {given: all(crowded), want: Answer{Decision: decide.Decision{Verb: Mark, Reason: v1alpha1.ReasonTooManyNodesGone}, Status: unknown, Tell: true, Again: LookAgain}},
		"too many nodes are gone when the release is due":    {given: all(says(yes, v1alpha1.ReasonReleasePending), after(hour), crowded), want: Answer{Decision: decide.Decision{Verb: Mark, Reason: v1alpha1.ReasonTooManyNodesGone}, Status: unknown, Tell: true, Again: LookAgain}},
		"too many nodes are gone just before the claim goes": {given: all(says(yes, v1alpha1.ReasonReleasingClaim), after(hour), retained, crowded), want: Answer{Decision: decide.Decision{Verb: Mark, Reason: v1alpha1.ReasonTooManyNodesGone}, Status: unknown, Tell: true, Again: LookAgain}},
		"the count begins again when fewer nodes are gone":   {given: all(says(unknown, v1alpha1.ReasonTooManyNodesGone), after(100*hour)), want: Answer{Decision: decide.Decision{Verb: Mark, Reason: v1alpha1.ReasonReleasePending}, Status: yes, Tell: true}},

		"the class keeps claims":      {given: all(keeping), want: Answer{Decision: decide.Decision{Verb: Mark, Reason: v1alpha1.ReasonClaimKept}, Status: yes}},
		"the class has no onNodeGone": {given: all(silent), want: Answer{Decision: decide.Decision{Verb: Mark, Reason: v1alpha1.ReasonClaimKept}, Status: yes}},
		"no class":                    {given: all(classless), want: Answer{Decision: decide.Decision{Verb: Mark, Reason: v1alpha1.ReasonClaimKept}, Status: yes}},
		"the class changes to keep claims during the release":  {given: all(says(yes, v1alpha1.ReasonReleasingClaim), after(hour), retained, keeping), want: Answer{Decision: decide.Decision{Verb: Mark, Reason: v1alpha1.ReasonClaimKept}, Status: yes}},
		"the class keeps claims while too many nodes are gone": {given: all(keeping, crowded), want: Answer{Decision: decide.Decision{Verb: Mark, Reason: v1alpha1.ReasonClaimKept}, Status: yes}},
		"no PersistentVolume":                              {given: all(unexported), want: Answer{Decision: decide.Decision{Verb: Mark, Reason: v1alpha1.ReasonClaimKept}, Status: yes, Again: LookSeldom}},
		"the PersistentVolume vanishes during the release": {given: all(says(yes, v1alpha1.ReasonReleasingClaim), after(hour), unexported), want: Answer{Decision: decide.Decision{Verb: Mark, Reason: v1alpha1.ReasonClaimKept}, Status: yes, Again: LookSeldom}},
		"the PersistentVolume is being deleted":            {given: all(goingPV), want: Answer{Decision: decide.Decision{Verb: Mark, Reason: v1alpha1.ReasonClaimKept}, Status: yes, Again: LookSeldom}},
		"no claim":                                         {given: all(unclaimed), want: Answer{Decision: decide.Decision{Verb: Mark, Reason: v1alpha1.ReasonClaimKept}, Status: yes, Again: LookSeldom}},
		"the claim is bound to another volume":             {given: all(elsewhere), want: Answer{Decision: decide.Decision{Verb: Mark, Reason: v1alpha1.ReasonClaimKept}, Status: yes, Again: LookSeldom}},
		"a user deletes the claim":                         {given: all(says(yes, v1alpha1.ReasonReleasePending), after(hour), deletedClaim), want: Answer{Decision: decide.Decision{Verb: Mark, Reason: v1alpha1.ReasonClaimKept}, Status: yes, Again: LookSeldom}},
		"a claim of a pod":                                 {given: all(ephemeral), want: Answer{Decision: decide.Decision{Verb: Mark, Reason: v1alpha1.ReasonClaimKept}, Status: yes, Again: LookSeldom}},
		"a claim of a StatefulSet":                         {given: all(ofSet), want: Answer{Decision: decide.Decision{Verb: Mark, Reason: v1alpha1.ReasonReleasePending}, Status: yes, Tell: true}},
		"a volume that left another node":                  {given: all(left), want: Answer{Decision: decide.Decision{Verb: Mark, Reason: v1alpha1.ReasonReleasePending}, Status: yes, Tell: true}},
		"a volume with another copy":                       {given: all(copied), want: Answer{Decision: decide.Decision{Verb: decide.None}}},
		"a volume with a copy to come":                     {given: all(replicated), want: Answer{Decision: decide.Decision{Verb: decide.None}}},
		"a volume with data on another node":               {given: all(moving), want: Answer{Decision: decide.Decision{Verb: decide.None}}},
		"a volume that is deleted":                         {given: all(says(yes, v1alpha1.ReasonReleasePending), after(hour), deleted), want: Answer{Decision: decide.Decision{Verb: decide.None}}},
	} {
		t.Run(name, func(t *testing.T) {
			f := facts(tc.given...)
			before := f.Volume.DeepCopy()
			got := Decide(f)
			if (got.Verb == Mark || got.Verb == Delete && len(before.Status.Conditions[0].Message) > 0) && got.Message == "" {
				t.Error("it does not say why")
			}
			got.Message = ""
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(before, f.Volume); diff != "" {
				t.Errorf("the volume was changed: %s", diff)
			}
		})
	}
}

func TestTheMessageOfAReleasedClaimSaysHowToGetTheDataBack(t *testing.T) {
	v := Decide(facts(says(yes, v1alpha1.ReasonReleasingClaim), after(hour), retained, unclaimed))
	for _, part := range []string{"node n1", "shop/db-0 was deleted", "PersistentVolume " + gonetest.ID + " is retained", "kubectl berth adopt n1 " + gonetest.ID + " --claim", "spec.volumeName " + gonetest.ID} {
		if !strings.Contains(v.Message, part) {
			t.Errorf("%q lacks %q", v.Message, part)
		}
	}
}

func TestANodeThatReturnsTooLateSaysHowToHaveTheDataAgain(t *testing.T) {
	named := func(f *Facts) { f.PersistentVolume.Name = "data" }
	deleted := func(f *Facts) { f.PersistentVolume = nil }
	for name, tc := range map[string]struct {
		given []option
		want  string // the PersistentVolume that it names; empty if there is nothing to be done
	}{
		"the PersistentVolume has another name": {[]option{says(yes, v1alpha1.ReasonClaimReleased), unclaimed, named}, "data"},
		"the PersistentVolume was deleted":      {[]option{says(yes, v1alpha1.ReasonClaimReleased), unclaimed, deleted}, gonetest.ID},
		"the claim is there":                    {[]option{says(yes, v1alpha1.ReasonReleasePending)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			v := Decide(facts(append(tc.given, after(2*hour), present)...))
			if told := strings.HasSuffix(v.Message, "spec.volumeName "+tc.want); v.Reason != v1alpha1.ReasonNodeReturned || told != (tc.want != "") || strings.Contains(v.Message, "released") != told {
				t.Errorf("%+v", v)
			}
		})
	}
}

func TestAMarkIsWrittenAgainIfAnythingOfItIsOther(t *testing.T) {
	m := metav1.Condition{Type: v1alpha1.ConditionNodeGone, Status: yes, Reason: v1alpha1.ReasonReleasePending, Message: "gone"}
	for name, tc := range map[string]struct {
		status          metav1.ConditionStatus
		reason, message string
		step            decide.Verb
		tell            bool
	}{
		"no part of the mark":     {yes, v1alpha1.ReasonReleasePending, "gone", decide.None, false},
		"the status of the mark":  {unknown, v1alpha1.ReasonReleasePending, "gone", Mark, true},
		"the reason of the mark":  {yes, v1alpha1.ReasonClaimReleased, "gone", Mark, true},
		"the message of the mark": {yes, v1alpha1.ReasonReleasePending, "long gone", Mark, false},
	} {
		if v := facts().say(m, tc.status, tc.reason, tc.message); v.Verb != tc.step || v.Tell != tc.tell {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

func TestACountIsMarkedOnce(t *testing.T) {
	f := facts()
	v := Decide(f)
	f.Volume.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionNodeGone, Status: v.Status, Reason: v.Reason, Message: v.Message, LastTransitionTime: metav1.NewTime(start)}}
	f.Now = start.Add(time.Minute)
	if v := Decide(f); v.Verb != decide.None {
		t.Errorf("%+v", v)
	}
}
