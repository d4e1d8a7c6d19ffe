package report

import (
	"testing"

	"berth.dev/berth/api/v1alpha1"
)

func TestAnAgentListsTheFeaturesThatOlderOnesLack(t *testing.T) {
	for _, feature := range []string{v1alpha1.FeatureCopies, v1alpha1.FeatureCopiesThick, v1alpha1.FeatureMkfsOptions, v1alpha1.FeatureAdoptedSnapshots, v1alpha1.FeatureDatasets, v1alpha1.FeatureDrivers} {
		n := &v1alpha1.StorageNode{}
		if n.Has(feature) {
			t.Errorf("an agent that has said nothing is taken for one with %s", feature)
		}
		n.Status = Describe(Facts{}, seen())
		if !n.Has(feature) {
			t.Errorf("the agent does not say %s: %v", feature, n.Status.Features)
		}
	}
}
