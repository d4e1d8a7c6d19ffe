package rules

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest"
)

var agentForgets = denied("berth-agent-storagenodes", "an agent may not say what is to be forgotten")

// orphaned is a volume whose Volume object is gone, as the agent reports it in full.
func orphaned(volume string) v1alpha1.InventoryItem {
	item, now := lost(volume), metav1.Now()
	item.Orphan = &v1alpha1.Orphan{
		Since: now, Deadline: &now, Reason: v1alpha1.OrphanNoObject, Message: "nobody knows it",
		Size: item.Allocated, Filesystem: "ext4", Source: "snap-1", Claim: "shop/db",
	}
	return item
}

func forgetting(names ...string) func(*v1alpha1.StorageNode) {
	return func(n *v1alpha1.StorageNode) {
		n.Spec.Forget = nil
		for _, name := range names {
			n.Spec.Forget = append(n.Spec.Forget, v1alpha1.ForgottenOrphan{
				Pool: "vg", Name: name, Size: resource.MustParse("1Gi"), Since: metav1.Unix(1, 0), At: metav1.Unix(1, 0)})
		}
	}
}

// forgetCases are changes of a StorageNode whose spec says that vol-a is to be
// forgotten. The administrator may make each of them.
var forgetCases = map[string]struct {
	change  func(*v1alpha1.StorageNode)
	refusal string // to the node's own agent
}{
	"a label":                             {change: func(n *v1alpha1.StorageNode) { n.Labels = map[string]string{"edited": "yes"} }},
	"a second orphan to forget":           {change: forgetting("vol-a", "vol-b"), refusal: agentForgets},
	"a different orphan to forget":        {change: forgetting("vol-b"), refusal: agentForgets},
	"no orphan to forget":                 {change: forgetting(), refusal: agentForgets},
	"a new size of the orphan to forget":  {change: func(n *v1alpha1.StorageNode) { n.Spec.Forget[0].Size = resource.MustParse("2Gi") }, refusal: agentForgets},
	"a new time of the orphan to forget":  {change: func(n *v1alpha1.StorageNode) { n.Spec.Forget[0].Since = metav1.Unix(2, 0) }, refusal: agentForgets},
	"a new moment of the order to forget": {change: func(n *v1alpha1.StorageNode) { n.Spec.Forget[0].At = metav1.Unix(2, 0) }, refusal: agentForgets},
	"a new pool of the orphan to forget":  {change: func(n *v1alpha1.StorageNode) { n.Spec.Forget[0].Pool = "vg1" }, refusal: agentForgets},
}

func TestOnlyAdministratorsNameTheOrphansToForget(t *testing.T) {
	env := apitest.Start(t)
	for name, tc := range forgetCases {
		t.Run(name, func(t *testing.T) {
			n := storageNode(v1alpha1.VolumeName(t.Name()))
			forgetting("vol-a")(n)
			if err := env.Client.Create(t.Context(), n); err != nil {
				t.Fatal(err)
			}
			byAgent, agent := n.DeepCopy(), env.Agent(t, n.Name)
			tc.change(byAgent)
			expect(t, agent.Update(t.Context(), byAgent), tc.refusal)
			if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(n), n); err != nil {
				t.Fatal(err)
			}
			tc.change(n)
			expect(t, env.Client.Update(t.Context(), n), "")
			n.Status.Pools = nil
			expect(t, agent.Status().Update(t.Context(), n), "")
		})
	}
}

func TestAnAgentCreatesNoStorageNodeThatForgets(t *testing.T) {
	env := apitest.Start(t)
	n := storageNode("forgetful")
	forgetting("vol-a")(n)
	expect(t, env.Agent(t, n.Name).Create(t.Context(), n), agentForgets)
}
