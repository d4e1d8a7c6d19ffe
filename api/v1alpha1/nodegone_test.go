package v1alpha1

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAClassKeepsClaimsUnlessItSaysOtherwise(t *testing.T) {
	saying := func(o *OnNodeGone) *PoolClass { return &PoolClass{Spec: PoolClassSpec{OnNodeGone: o}} }
	minute := &metav1.Duration{Duration: time.Minute}
	for name, tc := range map[string]struct {
		class  *PoolClass
		policy NodeGonePolicy
		after  time.Duration
	}{
		"no class":                                    {nil, NodeGoneKeep, 0},
		"a class without onNodeGone":                  {saying(nil), NodeGoneKeep, 0},
		"a class without a policy":                    {saying(&OnNodeGone{After: minute}), NodeGoneKeep, 0},
		"a class keeps the claims":                    {saying(&OnNodeGone{Policy: NodeGoneKeep, After: minute}), NodeGoneKeep, 0},
		"a class releases the claims after a minute":  {saying(&OnNodeGone{Policy: NodeGoneReleaseClaims, After: minute}), NodeGoneReleaseClaims, time.Minute},
		"a class releases the claims without a delay": {saying(&OnNodeGone{Policy: NodeGoneReleaseClaims}), NodeGoneReleaseClaims, time.Hour},
		"a class of a later version moves the claims": {saying(&OnNodeGone{Policy: "Move", After: minute}), NodeGoneKeep, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if policy, after := tc.class.NodeGone(); policy != tc.policy || after != tc.after {
				t.Errorf("%s after %s, want %s after %s", policy, after, tc.policy, tc.after)
			}
		})
	}
}
