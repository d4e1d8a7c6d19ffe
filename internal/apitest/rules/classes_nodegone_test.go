package rules

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest"
)

const delayBounds = "after must be between 1m and 8760h"

func releasing(after time.Duration) func(*v1alpha1.PoolClass) {
	return func(c *v1alpha1.PoolClass) {
		c.Spec.OnNodeGone = &v1alpha1.OnNodeGone{Policy: v1alpha1.NodeGoneReleaseClaims, After: &metav1.Duration{Duration: after}}
	}
}

// nodeGoneCases are classes that say how claims are treated whose node was deleted.
var nodeGoneCases = map[string]struct {
	change  func(*v1alpha1.PoolClass)
	refusal string
}{
	"the class releases claims after a minute":         {change: releasing(time.Minute)},
	"the class releases claims after days":             {change: releasing(90*time.Hour + time.Second)},
	"the class releases claims at once":                {change: releasing(0), refusal: delayBounds},
	"the class releases claims before a minute":        {change: releasing(59 * time.Second), refusal: delayBounds},
	"the class releases claims after a negative delay": {change: releasing(-time.Hour), refusal: "spec.onNodeGone.after"},
	"the class releases claims after more than a year": {change: releasing(8761 * time.Hour), refusal: delayBounds},
	"the class releases claims after half a second":    {change: releasing(500 * time.Millisecond), refusal: "spec.onNodeGone.after"},
	"the class moves claims": {change: func(c *v1alpha1.PoolClass) {
		c.Spec.OnNodeGone = &v1alpha1.OnNodeGone{Policy: "Move"}
	}, refusal: `Unsupported value: "Move"`},
}

func TestHowLongANodeMayBeGoneIsBounded(t *testing.T) {
	env := apitest.Start(t)
	for name, tc := range nodeGoneCases {
		t.Run(name, func(t *testing.T) {
			c := newClass(t, "vg")
			tc.change(c)
			expect(t, env.Client.Create(t.Context(), c), tc.refusal)
		})
	}
}

func TestADelayThatDoesNotFitATimeIsRefused(t *testing.T) {
	env := apitest.Start(t)
	for _, after := range []string{"99999999999999h", "an hour", "1d", ""} {
		c := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
			"provisioner": "LVM", "lvm": map[string]any{"volumeGroups": []any{"vg"}},
			"onNodeGone": map[string]any{"policy": "ReleaseClaims", "after": after},
		}}}
		c.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("PoolClass"))
		c.SetName(newClass(t).Name)
		expect(t, env.Client.Create(t.Context(), c), "spec.onNodeGone")
	}
}

func TestClaimsAreKeptUnlessAPoolClassSaysOtherwise(t *testing.T) {
	env := apitest.Start(t)
	for name, tc := range map[string]struct {
		given  *v1alpha1.OnNodeGone
		policy v1alpha1.NodeGonePolicy
		after  time.Duration
	}{
		"the class has no onNodeGone":       {nil, v1alpha1.NodeGoneKeep, 0},
		"the class has an empty onNodeGone": {&v1alpha1.OnNodeGone{}, v1alpha1.NodeGoneKeep, 0},
		"the class names no delay":          {&v1alpha1.OnNodeGone{Policy: v1alpha1.NodeGoneReleaseClaims}, v1alpha1.NodeGoneReleaseClaims, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClass(t, "vg")
			c.Spec.OnNodeGone = tc.given
			expect(t, env.Client.Create(t.Context(), c), "")
			if policy, after := c.NodeGone(); policy != tc.policy || after != tc.after {
				t.Errorf("%s after %s", policy, after)
			}
		})
	}
}
