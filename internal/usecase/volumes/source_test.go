package volumes

import (
	"errors"
	"testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
)

func TestHowLargeACopyIs(t *testing.T) {
	o := &origin{name: "volume v", bytes: gi + 4*mi, least: gi + 1}
	tests := map[string]struct {
		size  Size
		want  int64
		class error
	}{
		"no size":                                                    {Size{}, gi + 4*mi, nil},
		"the size that the source was asked for":                     {Size{Required: gi + 1}, gi + 4*mi, nil},
		"the size that the source has":                               {Size{Required: gi + 4*mi}, gi + 4*mi, nil},
		"a larger size":                                              {Size{Required: 2 * gi, Limit: 3 * gi}, 2 * gi, nil},
		"less than the source was asked for":                         {Size{Required: gi}, 0, ErrOutOfRange},
		"a limit below the size of the source":                       {Size{Limit: gi}, 0, ErrOutOfRange},
		"a limit between the wanted and the real size of the source": {Size{Required: gi + 1, Limit: gi + 2*mi}, 0, ErrOutOfRange},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got, err := o.size(test.size); got != test.want || !errors.Is(err, test.class) {
				t.Errorf("got %d, %v, want %d, %v", got, err, test.want, test.class)
			}
		})
	}
}

func TestACopyHasTheModeAndFilesystemOfItsSource(t *testing.T) {
	xfs := origin{name: "volume v", at: place{"n", "vg0/thin"}, mode: v1alpha1.Filesystem, fsType: v1alpha1.XFS}
	tests := map[string]struct {
		origin origin
		mode   v1alpha1.VolumeMode
		fsType v1alpha1.FSType
		class  error
	}{
		"the filesystem of the source": {xfs, v1alpha1.Filesystem, v1alpha1.XFS, nil},
		"no filesystem":                {xfs, v1alpha1.Filesystem, "", nil},
		"another filesystem":           {xfs, v1alpha1.Filesystem, v1alpha1.Ext4, provision.ErrInvalid},
		"another volumeMode":           {xfs, v1alpha1.Block, "", provision.ErrInvalid},
		"a source on a zvol":           {origin{at: place{"n", "zfs:tank/berth"}, mode: v1alpha1.Block}, v1alpha1.Block, "", nil},
		"a source in a volume group":   {origin{at: place{"n", "vg0"}, mode: v1alpha1.Filesystem}, v1alpha1.Filesystem, "", nil},
		"a source on a whole disk":     {origin{at: place{"n", "disk:wwn-1"}, mode: v1alpha1.Filesystem}, v1alpha1.Filesystem, "", provision.ErrUnsupported},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if err := test.origin.suits(&Request{Mode: test.mode, FSType: test.fsType}); !errors.Is(err, test.class) || (err == nil) != (test.class == nil) {
				t.Errorf("got %v, want %v", err, test.class)
			}
		})
	}
}
