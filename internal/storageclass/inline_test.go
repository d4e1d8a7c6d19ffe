package storageclass

import (
	"errors"
	"strings"
	"testing"

	"berth.dev/berth/api/v1alpha1"
)

func TestParseInline(t *testing.T) {
	tests := map[string]struct {
		attributes map[string]string
		want       Inline
		refused    string
	}{
		"a class and a size are all that is needed": {
			attributes: map[string]string{"poolClass": "fast", "size": "1Gi"}, want: Inline{PoolClass: "fast", Size: 1 << 30},
		},
		"a filesystem may be named": {
			attributes: map[string]string{"poolClass": "fast", "size": "500M", "fsType": "xfs"}, want: Inline{PoolClass: "fast", Size: 500e6, FSType: v1alpha1.XFS},
		},
		"options of mkfs may be given": {
			attributes: map[string]string{"poolClass": "fast", "size": "1", "mkfsOptions": " -I  512"}, want: Inline{PoolClass: "fast", Size: 1, MkfsOptions: "-I 512"},
		},
		"the kubelet adds the pod": {
			attributes: map[string]string{"poolClass": "fast", "size": "1", "csi.storage.k8s.io/pod.uid": "u", "csi.storage.k8s.io/ephemeral": "true"},
			want:       Inline{PoolClass: "fast", Size: 1},
		},
		"no class is refused":                                        {attributes: map[string]string{"size": "1Gi"}, refused: `"poolClass" is required`},
		"no size is refused":                                         {attributes: map[string]string{"poolClass": "fast"}, refused: `"size" is required`},
		"a size that is no number is refused":                        {attributes: map[string]string{"poolClass": "fast", "size": "big"}, refused: `"big" is not a size`},
		"a size of zero is refused":                                  {attributes: map[string]string{"poolClass": "fast", "size": "0"}, refused: "not above 0"},
		"a negative size is refused":                                 {attributes: map[string]string{"poolClass": "fast", "size": "-1Gi"}, refused: "not above 0"},
		"an unknown key is named":                                    {attributes: map[string]string{"poolClass": "fast", "size": "1", "raid": "1"}, refused: `unknown volumeAttribute "raid"`},
		"a key that only looks like a key of the kubelet is refused": {attributes: map[string]string{"poolClass": "fast", "size": "1", "csi.storage.k8s.io/x": "1"}, refused: "unknown"},
		"an unsupported filesystem is refused":                       {attributes: map[string]string{"poolClass": "fast", "size": "1", "fsType": "ntfs"}, refused: `"ntfs" is not supported`},
		"a class with a path is refused":                             {attributes: map[string]string{"poolClass": "../x", "size": "1"}, refused: `"../x"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := ParseInline(test.attributes)
			if test.refused == "" {
				if err != nil || got != test.want {
					t.Errorf("got %+v, %v", got, err)
				}
				return
			}
			if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), test.refused) {
				t.Errorf("got %v, want %q", err, test.refused)
			}
		})
	}
}
