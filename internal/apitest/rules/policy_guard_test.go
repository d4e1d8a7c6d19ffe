package rules

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest"
	"berth.dev/berth/internal/guard"
	guardlease "berth.dev/berth/internal/guard/lease"
)

// The refusals to the guard of n1, and to a guard of no node.
var (
	otherLease   = denied("berth-guard-leases", "the guard of n1 may write only the Lease berth-guard-n1")
	unboundGuard = denied("berth-guard-leases", "the token is not bound to a pod on a node")
)

func TestAGuardWritesTheLeaseOfItsOwnNodeAlone(t *testing.T) {
	env := apitest.Start(t)
	own := env.Guard(t, "n1")
	l := &guardlease.Lease{Client: own, Node: "n1", Namespace: apitest.Namespace, Boot: "boot", Now: time.Now}
	for range 2 {
		if err := l.Renew(t.Context(), func([]string) (guard.Renewal, error) { return guard.Renewal{Watchdog: true}, nil }); err != nil {
			t.Fatal(err)
		}
	}
	others := lease(v1alpha1.GuardLeasePrefix + "n2")
	if err := env.Client.Create(t.Context(), others.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	for name, refused := range map[string]error{
		"making the Lease of an agent":      own.Create(t.Context(), lease(v1alpha1.AgentLeasePrefix+"n1")),
		"making one that elects a leader":   own.Create(t.Context(), lease("berth-controller")),
		"deleting the one of another guard": own.Delete(t.Context(), others.DeepCopy()),
		"changing the one of another guard": own.Patch(t.Context(), others.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"holderIdentity":"n1"}}`))),
	} {
		t.Run(name, func(t *testing.T) { expect(t, refused, otherLease) })
	}
	expect(t, env.UnboundGuard(t).Create(t.Context(), lease(v1alpha1.GuardLeasePrefix+"n1")), unboundGuard)
}
