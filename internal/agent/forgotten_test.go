package agent

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/controller/controllertest"
	"berth.dev/berth/internal/quarantine"
)

// A deleted Volume waits for its node, which is gone, until an administrator says that the node
// does not come back. Then the node comes back.
func TestANodeThatWasForgottenAndReturnsKeepsItsDataAsAnOrphan(t *testing.T) {
	s := newSite(t, "")
	pc, _ := s.classes()
	s.create(pc, s.volume("a"))
	a := s.start()
	await(t, "the replica to be ready", s.says("a", isReady, v1alpha1.ReasonCarved))
	await(t, "the filesystem", s.formatted("a"))
	a.stop()
	controllertest.Start(t, s.Environment)
	if _, err := quarantine.ForgetNode(t.Context(), s.Client, s.name); err == nil {
		t.Error("a node that is there was forgotten")
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.name}}
	if err := s.Client.Delete(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	if err := s.Client.Delete(t.Context(), s.get("a")); err != nil {
		t.Fatal(err)
	}
	await(t, "the report to go", func() bool { return s.storageNode() == nil })
	if s.get("a") == nil {
		t.Fatal("the Volume did not wait for its node")
	}

	found, err := quarantine.ForgetNode(t.Context(), s.Client, s.name)
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	await(t, "the Volume to go", func() bool { return s.get("a") == nil })

	node.ResourceVersion = ""
	s.create(node)
	s.start()
	await(t, "the orphan", func() bool { return s.storageNode() != nil && s.orphaned() })
	if o := s.orphan(); o.Reason != v1alpha1.OrphanNoObject || !s.has("a") {
		t.Errorf("the orphan is %+v; the data is there: %v", o, s.has("a"))
	}
}
