package provision_test

import (
	"errors"
	"testing"

	"berth.dev/berth/internal/provision"
)

func TestADatasetIsMadeInAZpoolAlone(t *testing.T) {
	for name, tc := range map[string]struct {
		pool, filesystem string
		records          int64
		want             error
	}{
		"a block device anywhere":    {provision.LVM, "", 0, nil},
		"a dataset in a zpool":       {provision.ZFS, provision.Dataset, 0, nil},
		"small records":              {provision.ZFS, provision.Dataset, 512, nil},
		"large records":              {provision.ZFS, provision.Dataset, 1 << 20, nil},
		"records too small":          {provision.ZFS, provision.Dataset, 256, provision.ErrInvalid},
		"records too large":          {provision.ZFS, provision.Dataset, 2 << 20, provision.ErrInvalid},
		"records of no power of two": {provision.ZFS, provision.Dataset, 3 << 10, provision.ErrInvalid},
		"records of a negative size": {provision.ZFS, provision.Dataset, -512, provision.ErrInvalid},
		"a dataset in a group":       {provision.LVM, provision.Dataset, 0, provision.ErrUnsupported},
		"a dataset in a thin pool":   {provision.LVMThin, provision.Dataset, 0, provision.ErrUnsupported},
		"a dataset on a whole disk":  {provision.Device, provision.Dataset, 0, provision.ErrUnsupported},
		"ext4 as a tree":             {provision.ZFS, provision.Ext4, 0, provision.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			r := good()
			r.Pool.Type, r.Tree, r.Tuning.RecordSize = tc.pool, tc.filesystem, tc.records
			if err := r.Check(); !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
		})
	}
}

func TestFormattingKnowsADatasetByItsContent(t *testing.T) {
	for name, tc := range map[string]struct {
		tree, recorded, asked string
		met                   bool
		want                  error
	}{
		"a blank dataset":             {provision.Dataset, "", provision.Dataset, false, nil},
		"a dataset in use":            {provision.Dataset, provision.Dataset, provision.Dataset, true, nil},
		"a dataset with ext4":         {provision.Dataset, "", provision.Ext4, false, provision.ErrConflict},
		"a dataset as raw":            {provision.Dataset, "", provision.Raw, false, provision.ErrConflict},
		"a device with a dataset":     {"", "", provision.Dataset, false, provision.ErrConflict},
		"a device with ext4":          {"", "", provision.Ext4, false, nil},
		"a device with the same ext4": {"", provision.Ext4, provision.Ext4, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := provision.FormatRequest{ID: goodID, Filesystem: tc.asked}
			if err := r.Check(); err != nil {
				t.Fatal(err)
			}
			met, err := r.Met(provision.Volume{ID: goodID, Content: provision.Content{Source: "pvc-1", Tree: tc.tree}, Filesystem: tc.recorded})
			if met != tc.met || !errors.Is(err, tc.want) {
				t.Errorf("met %v, %v; want %v, %v", met, err, tc.met, tc.want)
			}
		})
	}
	if err := (provision.FormatRequest{ID: goodID, Filesystem: provision.Dataset, Options: "-b 4096"}).Check(); !errors.Is(err, provision.ErrInvalid) {
		t.Errorf("options of mkfs for what no mkfs makes: %v", err)
	}
}
