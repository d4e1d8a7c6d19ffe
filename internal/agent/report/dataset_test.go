package report

import (
	"testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/orphans"
	"berth.dev/berth/internal/provision"
)

// An administrator who adopts an unused dataset must not take it for a block device.
func TestAnOrphanedDatasetIsAFilesystemOfZFSAlsoBeforeItWasUsed(t *testing.T) {
	for name, tc := range map[string]struct {
		tree, recorded, want string
	}{
		"a dataset in use":                            {provision.Dataset, provision.Dataset, provision.Dataset},
		"a dataset that was never in use":             {provision.Dataset, "", provision.Dataset},
		"a block device with xfs":                     {"", provision.XFS, provision.XFS},
		"a blank block device":                        {"", "", ""},
		"a block device that a pod used as raw block": {"", provision.Raw, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := Facts{Orphans: map[string]orphans.Orphan{"pvc-1": {Reason: v1alpha1.OrphanNoObject}}}
			item := f.volume(provision.Volume{ID: "pvc-1", Size: gib, Content: provision.Content{Source: "pvc-1", Tree: tc.tree}, Filesystem: tc.recorded})
			if item.Orphan == nil || item.Orphan.Filesystem != tc.want {
				t.Errorf("reported as %+v, want %q", item.Orphan, tc.want)
			}
		})
	}
}
