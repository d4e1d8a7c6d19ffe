package rules

import (
	"context"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest"
)

var (
	unboundNodes      = denied("berth-agent-storagenodes", "the token is not bound to a pod on a node")
	unboundLeases     = denied("berth-agent-leases", "the token is not bound to a pod on a node")
	unboundCapacities = denied("berth-agent-capacities", "the token is not bound to a pod on a node")
	ownNode           = denied("berth-agent-storagenodes", "the agent of n1 may write only its own StorageNode")
	ownLease          = denied("berth-agent-leases", "the agent of n1 may write only the Lease berth-agent-n1")
	ownCapacity       = denied("berth-agent-capacities", "the agent of n1 may write only capacities with the topology of its own node")
)

// theirs is another driver's StorageClass. otherDriver is the refusal to an agent that publishes
// capacity of it.
const theirs = "another-drivers"

var otherDriver = denied("berth-agent-capacity-classes", "an agent publishes no capacity of another driver's StorageClass")

func reportedOf(class string) *storagev1.CSIStorageCapacity {
	c := reported("of-"+class, topology(v1alpha1.TopologyKey, "n1"))
	c.StorageClassName = class
	return c
}

func storageNode(name string) *v1alpha1.StorageNode {
	return &v1alpha1.StorageNode{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func lease(name string) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: apitest.Namespace, Name: name}}
}

// reported is a capacity for a class of its own, whose topology the test gives.
func reported(name string, topology *metav1.LabelSelector) *storagev1.CSIStorageCapacity {
	return &storagev1.CSIStorageCapacity{
		ObjectMeta:       metav1.ObjectMeta{Namespace: apitest.Namespace, Name: name},
		StorageClassName: "fast",
		NodeTopology:     topology,
	}
}

func topology(labels ...string) *metav1.LabelSelector {
	s := &metav1.LabelSelector{MatchLabels: map[string]string{}}
	for i := 0; i < len(labels); i += 2 {
		s.MatchLabels[labels[i]] = labels[i+1]
	}
	return s
}

func anyNode() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: v1alpha1.TopologyKey, Operator: metav1.LabelSelectorOpExists}}}
}

func ownAndMore() *metav1.LabelSelector {
	s := anyNode()
	s.MatchLabels = map[string]string{v1alpha1.TopologyKey: "n1"}
	return s
}

// createDenials are creations that the agent of n1 tries.
var createDenials = map[string]struct {
	object  client.Object
	refusal string
}{
	"the StorageNode of another node":       {storageNode("n2"), ownNode},
	"the Lease of another node":             {lease(v1alpha1.AgentLeasePrefix + "n2"), ownLease},
	"the Lease of its node's guard":         {lease(v1alpha1.GuardLeasePrefix + "n1"), ownLease},
	"a Lease that elects a leader":          {lease("berth-controller"), ownLease},
	"a Lease that bears the node's name":    {lease("n1"), ownLease},
	"the capacity of another node":          {reported("denied", topology(v1alpha1.TopologyKey, "n2")), ownCapacity},
	"a capacity of all nodes":               {reported("denied", topology()), ownCapacity},
	"a capacity without topology":           {reported("denied", nil), ownCapacity},
	"a capacity of every node with a label": {reported("denied", anyNode()), ownCapacity},
	"a capacity by a foreign label":         {reported("denied", topology("zone", "n1")), ownCapacity},
	"a capacity by two labels":              {reported("denied", topology(v1alpha1.TopologyKey, "n1", "zone", "a")), ownCapacity},
	"a capacity with an expression":         {reported("denied", ownAndMore()), ownCapacity},
	"a PoolClass": {&v1alpha1.PoolClass{ObjectMeta: metav1.ObjectMeta{Name: "denied"}, Spec: v1alpha1.PoolClassSpec{
		Provisioner: v1alpha1.ProvisionerLVM, LVM: &v1alpha1.LVMPools{VolumeGroups: []string{"vg"}}}}, outOfScope},
}

// The API server hears of a class a moment after it is made.
func TestAnAgentPublishesCapacityOfBerthsClassesAlone(t *testing.T) {
	env := apitest.Start(t)
	agent := env.Agent(t, "n1")
	for name, provisioner := range map[string]string{theirs: "disk.example.com", "berths": v1alpha1.LocalDriverName} {
		class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: provisioner}
		if err := env.Client.Create(t.Context(), class); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	refused := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err = agent.Create(ctx, reportedOf(theirs), client.DryRunAll)
		return err != nil, nil
	})
	if refused != nil {
		t.Fatal("an agent may publish capacity of another driver's class")
	}
	expect(t, err, otherDriver)
	expect(t, agent.Create(t.Context(), reportedOf("berths")), "")
	expect(t, agent.Create(t.Context(), reportedOf("not-made-yet")), "")
}

func TestAnAgentCreatesNothingForOthers(t *testing.T) {
	env := apitest.Start(t)
	agent := env.Agent(t, "n1")
	for name, tc := range createDenials {
		t.Run(name, func(t *testing.T) {
			expect(t, agent.Create(t.Context(), tc.object.DeepCopyObject().(client.Object)), tc.refusal)
		})
	}
}

// objectsOf returns the objects that the agent of a node writes, and how it changes each.
func objectsOf(node string) map[string]struct {
	object client.Object
	edit   func(client.Object)
} {
	label := func(o client.Object) { o.SetLabels(map[string]string{"edited": "yes"}) }
	return map[string]struct {
		object client.Object
		edit   func(client.Object)
	}{
		"StorageNode": {storageNode(node), label},
		"Lease": {lease(v1alpha1.AgentLeasePrefix + node), func(o client.Object) {
			holder := "somebody"
			o.(*coordinationv1.Lease).Spec.HolderIdentity = &holder
		}},
		"CSIStorageCapacity": {reported("capacity-of-"+node, topology(v1alpha1.TopologyKey, node)), label},
	}
}

func TestAnAgentKeepsItsOwnObjects(t *testing.T) {
	env := apitest.Start(t)
	agent := env.Agent(t, "own")
	for kind, tc := range objectsOf("own") {
		t.Run(kind, func(t *testing.T) {
			expect(t, agent.Create(t.Context(), tc.object), "")
			tc.edit(tc.object)
			expect(t, agent.Update(t.Context(), tc.object), "")
			if kind != "StorageNode" {
				expect(t, agent.Delete(t.Context(), tc.object), "")
			}
		})
	}
}

func TestAnAgentLeavesTheObjectsOfOthersAlone(t *testing.T) {
	env := apitest.Start(t)
	agent := env.Agent(t, "n1")
	update := map[string]string{"StorageNode": ownNode, "Lease": ownLease, "CSIStorageCapacity": ownCapacity}
	remove := map[string]string{"StorageNode": outOfScope, "Lease": ownLease, "CSIStorageCapacity": ownCapacity}
	for kind, tc := range objectsOf("other") {
		t.Run(kind, func(t *testing.T) {
			if err := env.Client.Create(t.Context(), tc.object); err != nil {
				t.Fatal(err)
			}
			edited := tc.object.DeepCopyObject().(client.Object)
			tc.edit(edited)
			expect(t, agent.Update(t.Context(), edited), update[kind])
			expect(t, agent.Delete(t.Context(), tc.object), remove[kind])
			expect(t, agent.DeleteAllOf(t.Context(), tc.object, client.InNamespace(tc.object.GetNamespace())), remove[kind])
		})
	}
}

func TestAnAgentCannotMakeTheCapacityOfAnotherItsOwn(t *testing.T) {
	env := apitest.Start(t)
	c := reported("stolen", topology(v1alpha1.TopologyKey, "n2"))
	if err := env.Client.Create(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	c.NodeTopology = topology(v1alpha1.TopologyKey, "n1")
	expect(t, env.Agent(t, "n1").Update(t.Context(), c), "field is immutable")
}

func TestThePoliciesOfAgentsBindOnlyAgents(t *testing.T) {
	env := apitest.Start(t)
	v := live(t, env.Client, newVolume(t), ready("n1", "n2"))
	failed("n1")(v)
	condition(metav1.ConditionFalse)(v)
	if err := env.Client.Status().Update(t.Context(), v); err != nil {
		t.Fatalf("an administrator cannot write: %v", err)
	}
}
