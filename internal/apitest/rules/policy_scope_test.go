package rules

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest"
)

// strayRequests are requests of clients that an agent should never be.
var strayRequests = map[string]struct {
	request func(t *testing.T, env *apitest.Environment) error
	refusal string
}{
	"a report where no replica is wanted": {
		request: func(t *testing.T, env *apitest.Environment) error {
			v := live(t, env.Client, newVolume(t, wanted("n2", "n3")), ready("n2"))
			ready("n1")(v)
			return env.Agent(t, "n1").Status().Update(t.Context(), v)
		}, refusal: placedEntry},
	"a new volume": {
		request: func(t *testing.T, env *apitest.Environment) error {
			return env.Agent(t, "n1").Create(t.Context(), newVolume(t))
		}, refusal: outOfScope},
	"an expansion": {
		request: func(t *testing.T, env *apitest.Environment) error {
			v := live(t, env.Client, newVolume(t))
			capacity("20Gi")(v)
			return env.Agent(t, "n1").Update(t.Context(), v)
		}, refusal: outOfScope},
	"another disk": {
		request: func(t *testing.T, env *apitest.Environment) error {
			v := live(t, env.Client, newVolume(t, shared))
			onDisk(diskHandle, diskIdentity)(v)
			return env.Agent(t, "n1").Update(t.Context(), v)
		}, refusal: outOfScope},
	"a LUN": {
		request: func(t *testing.T, env *apitest.Environment) error {
			return env.Agent(t, "n1").Create(t.Context(), newLUN(t))
		}, refusal: outOfScope},
	"the state of a LUN": {
		request: func(t *testing.T, env *apitest.Environment) error {
			l := newLUN(t)
			if err := env.Client.Create(t.Context(), l); err != nil {
				return err
			}
			l.Status.State = v1alpha1.LUNAvailable
			return env.Agent(t, "n1").Status().Update(t.Context(), l)
		}, refusal: lunAgentNode},
	"a deletion": {
		request: func(t *testing.T, env *apitest.Environment) error {
			return env.Agent(t, "n1").Delete(t.Context(), live(t, env.Client, newVolume(t)))
		}, refusal: outOfScope},
	"a deletion of all volumes": {
		request: func(t *testing.T, env *apitest.Environment) error {
			live(t, env.Client, newVolume(t))
			return env.Agent(t, "n1").DeleteAllOf(t.Context(), &v1alpha1.Volume{})
		}, refusal: outOfScope},
	"a report with a token that is bound to no pod": {
		request: func(t *testing.T, env *apitest.Environment) error {
			v := live(t, env.Client, newVolume(t))
			ready("n1")(v)
			return env.UnboundAgent(t).Status().Update(t.Context(), v)
		}, refusal: unboundVolumes},
	"a new snapshot": {
		request: func(t *testing.T, env *apitest.Environment) error {
			return env.Agent(t, "n1").Create(t.Context(), newSnapshot(t))
		}, refusal: outOfScope},
	"a deletion of a snapshot": {
		request: func(t *testing.T, env *apitest.Environment) error {
			return env.Agent(t, "n1").Delete(t.Context(), begun(t, env.Client))
		}, refusal: outOfScope},
	"a snapshot report from a node without a place": {
		request: func(t *testing.T, env *apitest.Environment) error {
			s := newSnapshot(t)
			s.Spec.Replicas = s.Spec.Replicas[1:]
			if err := env.Client.Create(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			says("n1", v1alpha1.SnapshotReady)(s)
			return env.Agent(t, "n1").Status().Update(t.Context(), s)
		}, refusal: placedSnapshot},
	"a snapshot with a token that is bound to no pod": {
		request: func(t *testing.T, env *apitest.Environment) error {
			s := begun(t, env.Client)
			says("n1", v1alpha1.SnapshotReady)(s)
			return env.UnboundAgent(t).Status().Update(t.Context(), s)
		}, refusal: unboundSnapshots},
	"a StorageNode with a token that is bound to no pod": {
		request: unbound(storageNode("n1")), refusal: unboundNodes},
	"a Lease with a token that is bound to no pod": {
		request: unbound(lease(v1alpha1.AgentLeasePrefix + "n1")), refusal: unboundLeases},
	"a capacity with a token that is bound to no pod": {
		request: unbound(reported("denied", topology(v1alpha1.TopologyKey, "n1"))), refusal: unboundCapacities},
}

func unbound(object client.Object) func(*testing.T, *apitest.Environment) error {
	return func(t *testing.T, env *apitest.Environment) error {
		return env.UnboundAgent(t).Create(t.Context(), object.DeepCopyObject().(client.Object))
	}
}

func TestTheAgentsAccountDoesNothingBeyondItsNode(t *testing.T) {
	env := apitest.Start(t)
	for name, tc := range strayRequests {
		t.Run(name, func(t *testing.T) { expect(t, tc.request(t, env), tc.refusal) })
	}
}
