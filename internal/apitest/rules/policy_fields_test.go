package rules

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest"
)

// writers say who may write each field of a Volume's status. A field that is
// added to the schema has to be added here too, and the policy has to agree.
var writers = map[string]string{
	"conditions[].type":               controller,
	"conditions[].status":             controller,
	"conditions[].reason":             controller,
	"conditions[].message":            controller,
	"conditions[].lastTransitionTime": controller,
	"conditions[].observedGeneration": controller,
	"replicas[].node":                 entryKey,
	"replicas[].pool":                 entryOwner,
	"replicas[].state":                entryOwner,
	"replicas[].ready":                entryOwner,
	"replicas[].capacity":             entryOwner,
	"replicas[].allocated":            entryOwner,
	"replicas[].requested":            entryOwner,
	"replicas[].reason":               entryOwner,
	"replicas[].message":              entryOwner,
}

// nodeWriters does the same for StorageNode, whose whole status is its agent's, but for the answers to orders.
var nodeWriters = map[string]string{
	"conditions[].type":                     nodeOwner,
	"conditions[].status":                   nodeOwner,
	"conditions[].reason":                   nodeOwner,
	"conditions[].message":                  nodeOwner,
	"conditions[].lastTransitionTime":       nodeOwner,
	"conditions[].observedGeneration":       nodeOwner,
	"diskOrders[].handle":                   orderAnswer,
	"diskOrders[].volume":                   orderAnswer,
	"diskOrders[].id":                       orderAnswer,
	"diskOrders[].wish":                     orderAnswer,
	"diskOrders[].state":                    orderAnswer,
	"diskOrders[].since":                    orderAnswer,
	"diskOrders[].problem":                  orderAnswer,
	"features[]":                            nodeOwner,
	"pools[].name":                          nodeOwner,
	"pools[].provisioner":                   nodeOwner,
	"pools[].total":                         nodeOwner,
	"pools[].foreign":                       nodeOwner,
	"pools[].filled":                        nodeOwner,
	"pools[].metadataFilledPercent":         nodeOwner,
	"pools[].media":                         nodeOwner,
	"pools[].allocationUnit":                nodeOwner,
	"pools[].largestVolume":                 nodeOwner,
	"pools[].classes[]":                     nodeOwner,
	"pools[].health":                        nodeOwner,
	"pools[].message":                       nodeOwner,
	"pools[].lastChange.at":                 nodeOwner,
	"pools[].lastChange.reason":             nodeOwner,
	"pools[].lastChange.message":            nodeOwner,
	"pools[].inventory[].volume":            nodeOwner,
	"pools[].inventory[].snapshot":          nodeOwner,
	"pools[].inventory[].allocated":         nodeOwner,
	"pools[].inventory[].inline.podUID":     nodeOwner,
	"pools[].inventory[].orphan.since":      nodeOwner,
	"pools[].inventory[].orphan.reason":     nodeOwner,
	"pools[].inventory[].orphan.message":    nodeOwner,
	"pools[].inventory[].orphan.deadline":   nodeOwner,
	"pools[].inventory[].orphan.size":       nodeOwner,
	"pools[].inventory[].orphan.filesystem": nodeOwner,
	"pools[].inventory[].orphan.source":     nodeOwner,
	"pools[].inventory[].orphan.claim":      nodeOwner,
	"pools[].inventory[].inline.name":       nodeOwner,
	"volumesRevision":                       nodeOwner,
	"summary.pools":                         nodeOwner,
	"summary.largestVolume":                 nodeOwner,
}

const (
	controller = "the controller alone"
	entryOwner = "the agent whose entry it is"
	entryKey   = "nobody: it is the entry's key"
	// ownership is below the record, which is one value: the permission depends on more than the
	// field. See ownershipCases.
	ownership   = "ownership."
	nodeOwner   = "the agent of the node"
	orderAnswer = "the node, as an order, and a controller, as its answer"
)

// everything fills every field of the entries and conditions. A test may change any
// one of the values, and the schema still holds.
func everything(v *v1alpha1.Volume) {
	size := resource.MustParse("10Gi")
	for _, node := range []string{"n1", "n2"} {
		entry(node, func(r *v1alpha1.ReplicaStatus) {
			*r = v1alpha1.ReplicaStatus{Node: node, Pool: "vg", State: v1alpha1.ReplicaReady,
				Capacity: &size, Allocated: &size, Requested: &size, Reason: "Tested", Message: "all is well"}
		})(v)
	}
	v.Status.Conditions = fullConditions()
}

func fullConditions() []metav1.Condition {
	return []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Tested", Message: "all is well",
		ObservedGeneration: 1, LastTransitionTime: metav1.Now()}}
}

// stored returns an object from the API server.
func stored(t *testing.T, env *apitest.Environment, object client.Object) *unstructured.Unstructured {
	t.Helper()
	gvk, err := env.Client.GroupVersionKindFor(object)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(object), u); err != nil {
		t.Fatal(err)
	}
	return u
}

// tries changes one field as an agent would, without keeping the change.
func tries(ctx context.Context, agent client.Client, object *unstructured.Unstructured, field leaf) error {
	changed := object.DeepCopy()
	field.change(changed.Object)
	return agent.Status().Update(ctx, changed, client.DryRunAll)
}

func TestEveryFieldOfAVolumesStatusHasOneWriter(t *testing.T) {
	env := apitest.Start(t)
	agent := env.Agent(t, "n1")
	begun := live(t, env.Controller(t), newVolume(t, many), everything, complete)
	volume := stored(t, env, begun)
	seen := map[string]bool{}
	for _, field := range statusLeaves(t, "volumes", volume.Object) {
		seen[field.path] = true
		t.Run(field.String(), func(t *testing.T) {
			err := tries(t.Context(), agent, volume, field)
			switch own := field.within(0); {
			case writers[field.path] == controller:
				expect(t, err, ownFields)
			case writers[field.path] == entryOwner && own:
				expect(t, err, "")
			case writers[field.path] == entryOwner:
				expect(t, err, ownEntry)
			case writers[field.path] == entryKey:
				expect(t, err, entryLeaves)
			case !strings.HasPrefix(field.path, ownership):
				t.Fatalf("nobody is said to write %s: decide, write the policy's rule, add it to writers", field.path)
			}
		})
	}
	for path := range writers {
		if !seen[path] {
			t.Errorf("writers has %s, the schema does not", path)
		}
	}
}

func TestEveryFieldOfAStorageNodesStatusHasOneWriter(t *testing.T) {
	env := apitest.Start(t)
	some := resource.MustParse("1Gi")
	n := storageNode("n1-reports")
	if err := env.Client.Create(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	answered := orderFor("refused", "1", v1alpha1.DiskAttach, v1alpha1.DiskOrderRefused)
	answered.Problem = "no slot"
	n.Status = v1alpha1.StorageNodeStatus{Conditions: fullConditions(), VolumesRevision: "1", DiskOrders: []v1alpha1.DiskOrder{answered},
		Summary:  &v1alpha1.StorageNodeSummary{Pools: "vg 1Gi", LargestVolume: "1Gi"},
		Features: []string{v1alpha1.FeatureCopies}, Pools: []v1alpha1.Pool{{
			Name: "vg", Provisioner: v1alpha1.ProvisionerLVM, Total: some, Foreign: some, AllocationUnit: some,
			LargestVolume: some, Classes: []string{"fast"}, Health: v1alpha1.PoolHealthy, Message: "all is well",
			Filled: &some, MetadataFilledPercent: 1, Media: v1alpha1.SSD,
			LastChange: &v1alpha1.PoolChange{At: metav1.Unix(1, 0), Reason: v1alpha1.PoolGrown, Message: "grown"},
			Inventory:  []v1alpha1.InventoryItem{orphaned("vol-lost"), inline("uid", "scratch"), {Snapshot: "snap-1", Allocated: some}}}}}
	if err := env.Client.Status().Update(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	itself, another := env.Agent(t, n.Name), env.Agent(t, "n1")
	node := stored(t, env, n)
	for _, field := range statusLeaves(t, "storagenodes", node.Object) {
		t.Run(field.String(), func(t *testing.T) {
			refusal, known := map[string]string{nodeOwner: "", orderAnswer: agentAnswers}[nodeWriters[field.path]]
			if !known {
				t.Fatalf("nobody is said to write %s: decide, write the policy's rule, add it to nodeWriters", field.path)
			}
			expect(t, tries(t.Context(), itself, node, field), refusal)
			expect(t, tries(t.Context(), another, node, field), ownNode)
		})
	}
}
