package report

import (
	"testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/orphans"
	"berth.dev/berth/internal/provision"
)

// Whoever adopts what was never used must not take a dataset for a block device.
func TestAnOrphanedDatasetIsAFilesystemOfZFSAlsoBeforeItWasUsed(t *testing.T) {
	for name, tc := range map[string]struct {
		device, recorded, want string
	}{
		"a dataset in use":      {"tank/pvc-1", provision.Dataset, provision.Dataset},
		"one that never was":    {"tank/pvc-1", "", provision.Dataset},
		"a zvol with ext4":      {"/dev/zvol/tank/pvc-1", provision.Ext4, provision.Ext4},
		"a zvol without any":    {"/dev/zvol/tank/pvc-1", "", ""},
		"what has no device":    {"", provision.XFS, provision.XFS},
		"a blank without any":   {"", "", ""},
		"a logical volume's":    {"/dev/vg0/pvc-1", provision.XFS, provision.XFS},
		"a logical volume, raw": {"/dev/vg0/pvc-1", "", ""},
		"what a pod had as raw": {"/dev/vg0/pvc-1", provision.Raw, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := Facts{Orphans: map[string]orphans.Orphan{"pvc-1": {Reason: v1alpha1.OrphanNoObject}}}
			item := f.volume(provision.Volume{ID: "pvc-1", Size: gib, Device: tc.device, Filesystem: tc.recorded})
			if item.Orphan == nil || item.Orphan.Filesystem != tc.want {
				t.Errorf("reported as %+v, want %q", item.Orphan, tc.want)
			}
		})
	}
}
