package replica

import (
	"testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/decide"
	"berth.dev/berth/internal/provision"
)

func dataset(name string) provision.Content {
	return provision.Content{Source: name, Tree: provision.Dataset}
}

func TestAVolumeOfTheOtherKindIsReportedAndNeverFormatted(t *testing.T) {
	zfs := func(v *v1alpha1.Volume) { v.Spec.FSType = v1alpha1.Dataset }
	for name, tc := range map[string]struct {
		v       *v1alpha1.Volume
		content provision.Content
	}{
		"a device in place of a dataset": {volume(zfs), provision.Content{Source: "/dev/vg0/" + id}},
		"a dataset in place of a device": {volume(), dataset("vg0/" + id)},
		"a dataset for a block volume":   {volume(block), dataset("vg0/" + id)},
	} {
		t.Run(name, func(t *testing.T) {
			record := carved(blank)
			record.Content = tc.content
			d := decided(tc.v, here, Facts{Record: record})
			if d.Verb != decide.Report || d.Entry.Reason != v1alpha1.ReasonConflict || d.Entry.Ready || d.Format.Filesystem != "" {
				t.Errorf("decided %+v", d)
			}
		})
	}
}

func TestAnAdoptedDatasetThatWasNeverUsedIsUsed(t *testing.T) {
	zfs := func(v *v1alpha1.Volume) { v.Spec.FSType = v1alpha1.Dataset }
	record := carved(blank)
	record.Content = dataset("vg0/" + id)
	if d := decided(volume(adopted, zfs), here, Facts{Record: record}); !d.Entry.Ready || d.Format.Filesystem != provision.Dataset {
		t.Errorf("decided %+v: nothing is made on it that could be the end of its data", d)
	}
}
