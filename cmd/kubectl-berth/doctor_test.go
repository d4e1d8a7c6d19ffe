package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/doctor"
)

// awake gives the node of wreck a Node, a Lease and a report.
func awake(t *testing.T, c client.Client) client.Client {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-3"}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "berth-system", Name: v1alpha1.AgentLeasePrefix + "node-3"}}
	if err := errors.Join(c.Create(t.Context(), node), c.Create(t.Context(), lease)); err != nil {
		t.Fatal(err)
	}
	n := &v1alpha1.StorageNode{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "node-3"}, n); err != nil {
		t.Fatal(err)
	}
	n.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReporting}}
	if err := c.Status().Update(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	return c
}

// consult runs kubectl berth doctor, and between its two looks a function.
func consult(t *testing.T, c client.Client, between func(), args ...string) (string, error) {
	t.Helper()
	connect := func(target) (client.Reader, string, error) { return c, "shop", nil }
	cmd := newDoctorCommand(&target{system: "berth-system"}, connect, func(context.Context) error { between(); return nil })
	var out strings.Builder
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

func TestTheDoctorListsFindingsWithTheWayOut(t *testing.T) {
	out, err := consult(t, awake(t, wreck(t)), func() {})
	want := `Error DataMissing
  Volume ` + missing + ` on node node-3
  the node says DeviceMissing: the pool no longer has it
  next: kubectl describe bsn node-3
  next: kubectl describe bvol ` + missing + `

Error ObjectLost
  Volume ` + lost + ` on node node-3
  it has no object
  next: kubectl berth adopt node-3 ` + lost + `

Info Unreferenced
  Volume ` + missing + `
  neither a claim nor a PersistentVolume refers to its data: adopt it, or delete the Volume and its data
  next: kubectl berth adopt node-3 ` + missing + `

3 disagreements.
`
	if diff := cmp.Diff(want, out); diff != "" || exitCode(err) != 2 {
		t.Error(err, diff)
	}
	document, err := consult(t, awake(t, wreck(t)), func() {}, "-o", "json")
	var found []doctor.Finding
	if exitCode(err) != 2 || json.Unmarshal([]byte(document), &found) != nil || len(found) != 3 {
		t.Errorf("%v: %s", err, document)
	}
}

func TestTheDoctorReportsNothingThatIsGoneAtTheSecondLook(t *testing.T) {
	c := awake(t, wreck(t))
	out, err := consult(t, c, func() {
		if err := c.DeleteAllOf(t.Context(), &v1alpha1.Volume{}); err != nil {
			t.Fatal(err)
		}
		n := &v1alpha1.StorageNode{}
		if err := c.Get(t.Context(), client.ObjectKey{Name: "node-3"}, n); err != nil {
			t.Fatal(err)
		}
		n.Status.Pools[0].Inventory = nil
		if err := c.Status().Update(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	})
	if err != nil || out != "All agrees.\n" {
		t.Errorf("%v: %s", err, out)
	}
	if out, err := consult(t, c, func() { t.Error("a second look at a cluster where all agrees") }, "-o", "json"); err != nil || out != "[]\n" {
		t.Errorf("%v: %s", err, out)
	}
}

func TestAnErrorIsNoFinding(t *testing.T) {
	if got := exitCode(errors.New("the cluster cannot be read")); got != 1 {
		t.Errorf("exit status %d", got)
	}
}
