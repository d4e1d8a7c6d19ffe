package volumes

import (
	"errors"
	"strings"
	"testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
)

func TestSizes(t *testing.T) {
	const none = v1alpha1.FSType("")
	tests := map[string]struct {
		size   Size
		mode   v1alpha1.VolumeMode
		fsType v1alpha1.FSType
		want   int64
		class  error
		told   string
	}{
		"the required size":                              {size: Size{Required: 5 * gi}, fsType: v1alpha1.Ext4, want: 5 * gi},
		"no size gives the default":                      {fsType: v1alpha1.Ext4, want: DefaultSize},
		"a limit alone bounds the default":               {size: Size{Limit: 512 * mi}, fsType: v1alpha1.Ext4, want: 512 * mi},
		"a large limit alone gives the default":          {size: Size{Limit: 8 * gi}, fsType: v1alpha1.Ext4, want: DefaultSize},
		"a small ext4 is rounded up":                     {size: Size{Required: 1}, fsType: v1alpha1.Ext4, want: 32 * mi},
		"a small xfs is rounded up":                      {size: Size{Required: 1}, fsType: v1alpha1.XFS, want: 300 * mi},
		"a small block volume is rounded up":             {size: Size{Required: 1}, mode: v1alpha1.Block, fsType: none, want: 4 * mi},
		"a limit that forbids rounding up":               {size: Size{Required: 1, Limit: 100 * mi}, fsType: v1alpha1.XFS, class: ErrOutOfRange, told: "the limit of 100Mi is below the 300Mi that xfs needs"},
		"the largest size":                               {size: Size{Required: MaxSize}, fsType: v1alpha1.Ext4, want: MaxSize},
		"a size above the largest size":                  {size: Size{Required: MaxSize + 1}, fsType: v1alpha1.Ext4, class: ErrOutOfRange, told: "more than"},
		"a negative size":                                {size: Size{Required: -1}, fsType: v1alpha1.Ext4, class: provision.ErrInvalid, told: "negative"},
		"a negative limit":                               {size: Size{Limit: -1}, fsType: v1alpha1.Ext4, class: provision.ErrInvalid, told: "negative"},
		"a limit below the required size":                {size: Size{Required: 2 * gi, Limit: gi}, fsType: v1alpha1.Ext4, class: provision.ErrInvalid, told: "the limit of 1Gi is below the required 2Gi"},
		"a limit below the least size of a block volume": {size: Size{Limit: 1}, mode: v1alpha1.Block, class: ErrOutOfRange, told: "a block volume needs"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := test.size.bytes(test.mode, test.fsType)
			if !errors.Is(err, test.class) || got != test.want {
				t.Fatalf("got %d, %v, want %d, %v", got, err, test.want, test.class)
			}
			if err != nil && !strings.Contains(err.Error(), test.told) {
				t.Errorf("%q lacks %q", err, test.told)
			}
		})
	}
}
