package rules

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest"
)

// The refusals of the policies to the agent of n1.
var (
	unboundVolumes   = denied("berth-agent-volumes", "the token is not bound to a pod on a node")
	ownEntry         = denied("berth-agent-volumes", "the agent of n1 may write only its own entry of status.replicas")
	placedEntry      = denied("berth-agent-volumes", "the agent of n1 may add its entry only where spec.replicas names it")
	ownFields        = denied("berth-agent-volumes", "an agent writes only replicas and ownership of a Volume's status")
	ownSnapshot      = denied("berth-agent-snapshots", "the agent of n1 may write only its own entry of status.replicas")
	placedSnapshot   = denied("berth-agent-snapshots", "the agent of n1 may add its entry only where spec.replicas names it")
	unboundSnapshots = denied("berth-agent-snapshots", "the token is not bound to a pod on a node")
	outOfScope       = denied("berth-agent-scope", "an agent writes only the status of Volumes, Snapshots and LUNs, and its own StorageNode")
)

func denied(policy, message string) string {
	return "ValidatingAdmissionPolicy '" + policy + "' with binding '" + policy + "' denied request: " + message
}

func condition(status metav1.ConditionStatus) change {
	return func(v *v1alpha1.Volume) {
		meta.SetStatusCondition(&v.Status.Conditions, metav1.Condition{Type: "Ready", Status: status, Reason: "Tested"})
	}
}

// agentCases are requests of the agent of n1.
var agentCases = map[string]statusCase{
	"reports for the first time": {
		change: ready("n1")},
	"reports beside another node": {
		before: []change{ready("n2")}, change: ready("n1")},
	"changes the own report": {
		before: []change{ready("n1", "n2")}, change: failed("n1")},
	"reports the replica gone": {
		before: []change{ready("n1", "n2")}, change: gone("n1")},
	"drops the own entry after the replica is gone": {
		before: []change{ready("n2", "n1"), gone("n1")}, change: dropped("n1")},
	"reorders the entries": {
		before: []change{ready("n2", "n3"), ready("n1")},
		change: func(v *v1alpha1.Volume) {
			r := v.Status.Replicas
			r[0], r[1] = r[1], r[0]
		}},
	"changes the entry of another node": {
		before: []change{ready("n1", "n2")}, change: failed("n2"), refusal: ownEntry},
	"drops the entry of another node": {
		before: []change{ready("n1", "n2"), gone("n2")}, change: dropped("n2"), refusal: ownEntry},
	"adds an entry for another node": {
		before: []change{ready("n1")}, change: ready("n2"), refusal: ownEntry},
	"replaces the entry of a second node by the entry of a third node": {
		before: []change{ready("n1", "n2"), gone("n2")}, change: all(dropped("n2"), ready("n3")), refusal: ownEntry},
	"sets a condition": {
		before: []change{ready("n1")}, change: condition(metav1.ConditionTrue), refusal: ownFields},
	"changes a condition": {
		before: []change{all(ready("n1"), condition(metav1.ConditionTrue))}, change: condition(metav1.ConditionFalse), refusal: ownFields},
	"removes the conditions": {
		before:  []change{all(ready("n1"), condition(metav1.ConditionTrue))},
		change:  func(v *v1alpha1.Volume) { v.Status.Conditions = nil },
		refusal: ownFields},
}

func TestAnAgentWritesOnlyItsOwnPartOfAVolume(t *testing.T) {
	env := apitest.Start(t)
	agent := env.Agent(t, "n1")
	for name, tc := range agentCases {
		t.Run(name, func(t *testing.T) {
			v := live(t, env.Client, newVolume(t), tc.before...)
			before := v.DeepCopy()
			tc.change(v)
			err := agent.Status().Update(t.Context(), v)
			expect(t, err, tc.refusal)
			if tc.refusal != "" {
				unchanged(t, env.Client, before)
			}
		})
	}
}

func TestAnAgentReportsTheEndOfAReplicaThatIsNoLongerWanted(t *testing.T) {
	env := apitest.Start(t)
	v := live(t, env.Client, newVolume(t), ready("n1", "n2"))
	wanted("n2")(v)
	if err := env.Client.Update(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	gone("n1")(v)
	expect(t, env.Agent(t, "n1").Status().Update(t.Context(), v), "")
}

func TestTheStatusEndpointTakesNothingElseFromAnAgent(t *testing.T) {
	env := apitest.Start(t)
	v := live(t, env.Client, newVolume(t), ready("n1"))
	sly := v.DeepCopy()
	capacity("20Gi")(sly)
	sly.Labels, sly.Finalizers = map[string]string{"a": "b"}, []string{v1alpha1.VolumeFinalizer}
	v1alpha1.SetForgottenNodes(sly, []string{"n1"})
	if err := env.Agent(t, "n1").Status().Update(t.Context(), sly); err != nil {
		t.Fatal(err)
	}
	got := &v1alpha1.Volume{}
	if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(v), got); err != nil {
		t.Fatal(err)
	}
	if got.Spec.Capacity.Cmp(v.Spec.Capacity) != 0 || len(got.Labels)+len(got.Annotations)+len(got.Finalizers) != 0 {
		t.Fatalf("the status endpoint changed spec or metadata: %+v", got)
	}
}
