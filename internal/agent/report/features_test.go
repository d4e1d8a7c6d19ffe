package report

import (
	"testing"

	"berth.dev/berth/api/v1alpha1"
)

func TestAnAgentSaysWhatOlderOnesCannot(t *testing.T) {
	n := &v1alpha1.StorageNode{}
	if n.Has(v1alpha1.FeatureCopies) {
		t.Error("an agent that has said nothing is taken for one that copies")
	}
	n.Status = Describe(Facts{}, seen())
	if !n.Has(v1alpha1.FeatureCopies) {
		t.Errorf("the agent does not say that it copies: %v", n.Status.Features)
	}
}
