package rules

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	apply "berth.dev/berth/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"berth.dev/berth/internal/apitest"
)

// Each patch would undo an ownership or forget a replica if a rule were attached to
// the field that the patch removes.
var removals = map[string]struct {
	kind  types.PatchType
	patch string
}{
	"a merge patch of status to null":                  {types.MergePatchType, `{"status":null}`},
	"a merge patch of ownership to null":               {types.MergePatchType, `{"status":{"ownership":null}}`},
	"a merge patch of its primary to null":             {types.MergePatchType, `{"status":{"ownership":{"primary":null}}}`},
	"a merge patch of its lineage to null":             {types.MergePatchType, `{"status":{"ownership":{"lineage":null}}}`},
	"a merge patch of replicas to null":                {types.MergePatchType, `{"status":{"replicas":null}}`},
	"a merge patch that replaces all entries with one": {types.MergePatchType, `{"status":{"replicas":[{"node":"n1","state":"Failed","ready":false}]}}`},
	"a JSON patch that removes the status":             {types.JSONPatchType, `[{"op":"remove","path":"/status"}]`},
	"a JSON patch that removes the ownership":          {types.JSONPatchType, `[{"op":"remove","path":"/status/ownership"}]`},
	"a JSON patch that removes the entries":            {types.JSONPatchType, `[{"op":"remove","path":"/status/replicas"}]`},
	"a JSON patch that removes one entry":              {types.JSONPatchType, `[{"op":"remove","path":"/status/replicas/1"}]`},
	"a JSON patch that lowers the epoch":               {types.JSONPatchType, `[{"op":"replace","path":"/status/ownership/epoch","value":{"number":1,"id":"random-1"}}]`},
	"a JSON patch that moves the primary":              {types.JSONPatchType, `[{"op":"replace","path":"/status/ownership/primary/node","value":"n2"}]`},
}

func owned(t *testing.T, env *apitest.Environment) *v1alpha1.Volume {
	t.Helper()
	return live(t, env.Controller(t), newVolume(t, replicated), ready("n1", "n2"), recorded)
}

func TestNoPatchRemovesTheRecordedDecisionsOfAVolume(t *testing.T) {
	env := apitest.Start(t)
	for name, tc := range removals {
		t.Run(name, func(t *testing.T) {
			v := owned(t, env)
			before := v.DeepCopy()
			err := env.Controller(t).Status().Patch(t.Context(), v, client.RawPatch(tc.kind, []byte(tc.patch)))
			expect(t, err, "is invalid")
			unchanged(t, env.Client, before)
		})
	}
}

func TestAForcedApplyDoesNotRemoveTheRecordedDecisionsOfAVolume(t *testing.T) {
	env := apitest.Start(t)
	v := newVolume(t, replicated)
	if err := env.Client.Create(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	owner := []client.SubResourceApplyOption{client.FieldOwner("one-manager"), client.ForceOwnership}
	entry := apply.ReplicaStatus().WithNode("n1").WithState(v1alpha1.ReplicaReady).WithReady(true).WithCapacity(v.Spec.Capacity)
	full := apply.Volume(v.Name).WithStatus(apply.VolumeStatus().WithReplicas(entry).WithOwnership(&apply.OwnershipApplyConfiguration{
		Epoch:   apply.Epoch().WithNumber(3).WithID("random-3"),
		Primary: apply.Primary().WithPhase(v1alpha1.PrimaryReleased),
		Clean:   new(true),
		Lineage: []apply.BranchApplyConfiguration{*apply.Branch().WithEpoch(apply.Epoch().WithNumber(3).WithID("random-3"))},
	}))
	c := env.Controller(t)
	if err := c.Status().Apply(t.Context(), full, owner...); err != nil {
		t.Fatal(err)
	}
	withoutEntry := apply.Volume(v.Name).WithStatus(apply.VolumeStatus().WithOwnership(full.Status.Ownership))
	expect(t, c.Status().Apply(t.Context(), withoutEntry, owner...), entryLeaves)
	withoutOwnership := apply.Volume(v.Name).WithStatus(apply.VolumeStatus().WithReplicas(entry))
	expect(t, c.Status().Apply(t.Context(), withoutOwnership, owner...), ownershipRemoved)
}

func TestWritesToTheMainEndpointLeaveTheStatusAlone(t *testing.T) {
	env := apitest.Start(t)
	v := owned(t, env)
	before := v.DeepCopy()
	v.Status = v1alpha1.VolumeStatus{}
	if err := env.Client.Update(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	unchanged(t, env.Client, before)
}
