package storageclass

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

// What is accepted names a PoolClass that can exist; what is refused is refused for good.
func FuzzParameters(f *testing.F) {
	f.Add("poolClass", "fast", "mkfsOptions", "-m 0")
	f.Add("poolClass", "../other", "csi.storage.k8s.io/fstype", "xfs")
	f.Fuzz(func(t *testing.T, key, value, key2, value2 string) {
		given := map[string]string{key: value, key2: value2}
		p, err := Parse(given)
		if err == nil && len(validation.IsDNS1123Subdomain(p.PoolClass)) > 0 || err != nil && !errors.Is(err, ErrInvalid) {
			t.Errorf("%q: %+v, %v", given, p, err)
		}
	})
}

// A tenant writes these into a pod.
func FuzzInlineAttributes(f *testing.F) {
	f.Add("fast", "1Gi", "fsType", "xfs")
	f.Add("fast", "1e999", "fsType", "")
	f.Add("fast", "-1", "size ", "1")
	f.Fuzz(func(t *testing.T, class, size, key, value string) {
		given := map[string]string{PoolClassKey: class, SizeKey: size}
		if _, taken := given[key]; !taken {
			given[key] = value
		}
		v, err := ParseInline(given)
		if err == nil && (v.Size < 1 || len(validation.IsDNS1123Subdomain(v.PoolClass)) > 0) || err != nil && !errors.Is(err, ErrInvalid) {
			t.Errorf("%q: %+v, %v", given, v, err)
		}
	})
}
