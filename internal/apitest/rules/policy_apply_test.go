package rules

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	apply "berth.dev/berth/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"berth.dev/berth/internal/apitest"
)

func applyEntry(ctx context.Context, c client.Client, volume, node, message string, opts ...client.SubResourceApplyOption) error {
	entry := apply.ReplicaStatus().WithNode(node).WithState(v1alpha1.ReplicaReady).WithReady(true).
		WithCapacity(resource.MustParse("10Gi")).WithMessage(message)
	body := apply.Volume(volume).WithStatus(apply.VolumeStatus().WithReplicas(entry))
	return c.Status().Apply(ctx, body, opts...)
}

func manager(node string) client.FieldOwner { return client.FieldOwner("agent-" + node) }

func TestAgentsThatApplyTheirEntriesAtOnceLoseNothing(t *testing.T) {
	const rounds = 10
	env := apitest.Start(t)
	nodes := []string{"n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8"}
	v := live(t, env.Client, newVolume(t, wanted(nodes...)))
	errs := make(chan error, len(nodes))
	for _, node := range nodes {
		agent := env.Agent(t, node)
		go func() {
			for round := range rounds {
				if err := applyEntry(t.Context(), agent, v.Name, node, fmt.Sprintf("round %d of %s", round, node), manager(node)); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	for range nodes {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(v), v); err != nil {
		t.Fatal(err)
	}
	last := map[string]string{}
	for _, r := range v.Status.Replicas {
		last[r.Node] = r.Message
	}
	for _, node := range nodes {
		if want := fmt.Sprintf("round %d of %s", rounds-1, node); last[node] != want {
			t.Errorf("the entry of %s says %q, want %q", node, last[node], want)
		}
	}
}

func TestAnAgentCannotForceItsWayIntoAnothersEntry(t *testing.T) {
	env := apitest.Start(t)
	n1, n2 := env.Agent(t, "n1"), env.Agent(t, "n2")
	v := live(t, env.Client, newVolume(t))
	expect(t, applyEntry(t.Context(), n2, v.Name, "n2", "mine", manager("n2")), "")
	expect(t, applyEntry(t.Context(), n1, v.Name, "n2", "yours", manager("n1"), client.ForceOwnership), ownEntry)
	// The same is refused under the other agent's name.
	expect(t, applyEntry(t.Context(), n1, v.Name, "n2", "yours", manager("n2"), client.ForceOwnership), ownEntry)
}
