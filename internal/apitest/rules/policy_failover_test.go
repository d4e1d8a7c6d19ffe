package rules

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest"
)

var (
	mayNotAsk     = denied("berth-volume-ownership", "only who may create failovers.berth.dev asks for a fence")
	asksNoStandby = denied("berth-volume-ownership", "a person asks a standby that is ready to shut the writer out")
	asksKey       = denied("berth-volume-ownership", "the key of the standby that is asked, and no other, is listed with the request")
)

// askedFor has a standby asked to shut the writer of epoch 5 out, with keys beside the writer's.
func askedFor(executor string, keys ...v1alpha1.ReservationKey) change {
	return owns(func(o *v1alpha1.Ownership) {
		o.FenceRequest = &v1alpha1.FenceRequest{Executor: executor, Epoch: nth(5)}
		o.Keys = append(o.Keys, keys...)
	})
}

// asksFor asks a standby to shut the writer of epoch 5 out, with the key that it takes for that.
func asksFor(executor string) change {
	return askedFor(executor, v1alpha1.ReservationKey{Node: executor, Epoch: nth(5), Fence: true})
}

func TestAPersonWithTheRightAsksAStandbyToShutTheWriterOut(t *testing.T) {
	env := apitest.Start(t)
	status := rbacv1.PolicyRule{APIGroups: []string{"berth.dev"}, Resources: []string{"volumes/status"}, Verbs: []string{"update"}}
	right := rbacv1.PolicyRule{APIGroups: []string{"berth.dev"}, Resources: []string{"failovers"}, Verbs: []string{"create"}}
	people := map[string]client.Client{"any": user(t, env, "any-person", status), "granted": user(t, env, "granted-person", status, right)}
	key := func(node string, number int64, fence bool) v1alpha1.ReservationKey {
		return v1alpha1.ReservationKey{Node: node, Epoch: nth(number), Fence: fence}
	}
	asks := asksFor("n2")
	for name, tc := range map[string]struct {
		by      string
		before  change
		change  change
		refusal string
	}{
		"with the right":                          {by: "granted", change: asks},
		"without the right":                       {by: "any", change: asks, refusal: mayNotAsk},
		"of the writer":                           {by: "granted", change: askedFor("n1", key("n1", 5, true)), refusal: asksNoStandby},
		"of a node without replica":               {by: "granted", change: askedFor("n3", key("n3", 5, true)), refusal: asksNoStandby},
		"of one that is not ready":                {by: "granted", before: counted("n2", v1alpha1.OwnedSyncing), change: asks, refusal: asksNoStandby},
		"without a key":                           {by: "granted", change: askedFor("n2"), refusal: asksKey},
		"with a key of a takeover":                {by: "granted", change: askedFor("n2", key("n2", 5, false)), refusal: asksKey},
		"with a key of an epoch that is not open": {by: "granted", change: askedFor("n2", key("n2", 6, true)), refusal: asksKey},
		"with a key alone":                        {by: "granted", change: owns(func(o *v1alpha1.Ownership) { o.Keys = append(o.Keys, key("n2", 5, true)) }), refusal: asksNoStandby},
		"taken back":                              {by: "granted", before: asks, change: owns(func(o *v1alpha1.Ownership) { o.FenceRequest = nil }), refusal: asksNoStandby},
		"and fences at once":                      {by: "granted", change: all(fenced), refusal: onlyBerth},
	} {
		t.Run(name, func(t *testing.T) {
			v := newVolume(t, shared)
			if err := env.Client.Create(t.Context(), v); err != nil {
				t.Fatal(err)
			}
			attached(v)
			if tc.before != nil {
				tc.before(v)
			}
			if err := env.Controller(t).Status().Update(t.Context(), v); err != nil {
				t.Fatal(err)
			}
			tc.change(v)
			expect(t, people[tc.by].Status().Update(t.Context(), v), tc.refusal)
		})
	}
}
