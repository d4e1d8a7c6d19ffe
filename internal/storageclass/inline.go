package storageclass

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision/mkfs"
)

// The volumeAttributes of an inline volume, next to PoolClassKey and MkfsOptionsKey.
const (
	SizeKey         = "size"
	InlineFSTypeKey = "fsType"
)

// fromKubelet are the attributes that the kubelet adds for the driver.
var fromKubelet = []string{
	"csi.storage.k8s.io/ephemeral",
	"csi.storage.k8s.io/pod.name",
	"csi.storage.k8s.io/pod.namespace",
	"csi.storage.k8s.io/pod.uid",
	"csi.storage.k8s.io/serviceAccount.name",
	"csi.storage.k8s.io/serviceAccount.tokens",
}

// Inline is the request of a pod for an inline volume.
type Inline struct {
	PoolClass string
	// Size in bytes, at least 1.
	Size int64
	// FSType, or empty if the pod does not say.
	FSType v1alpha1.FSType
	// MkfsOptions as in Parameters.
	MkfsOptions string
}

// ParseInline reads the volumeAttributes of an inline volume, as they stand in
// the pod or, with the kubelet's additions, in a NodePublishVolume request. Its
// errors name the key and wrap ErrInvalid.
func ParseInline(attributes map[string]string) (Inline, error) {
	var v Inline
	for _, key := range slices.Sorted(maps.Keys(attributes)) {
		if err := v.set(key, attributes[key]); err != nil {
			return Inline{}, err
		}
	}
	switch {
	case v.PoolClass == "":
		return Inline{}, Invalid("volumeAttribute %q is required: it names a PoolClass", PoolClassKey)
	case v.Size == 0:
		return Inline{}, Invalid("volumeAttribute %q is required: it is how large the volume is, such as 1Gi", SizeKey)
	}
	return v, nil
}

func (v *Inline) set(key, value string) (err error) {
	switch key {
	case PoolClassKey:
		v.PoolClass, err = objectName(key, value)
	case InlineFSTypeKey:
		v.FSType, err = ParseFSType(value)
	case MkfsOptionsKey:
		v.MkfsOptions = mkfs.Normal(value)
	case SizeKey:
		v.Size, err = parseSize(key, value)
	default:
		if slices.Contains(fromKubelet, key) {
			return nil
		}
		err = Invalid("unknown volumeAttribute %q (known: %s, %s, %s, %s)", key, PoolClassKey, SizeKey, InlineFSTypeKey, MkfsOptionsKey)
	}
	return err
}

func parseSize(key, value string) (int64, error) {
	q, err := resource.ParseQuantity(value)
	if err != nil {
		return 0, Invalid("volumeAttribute %q: %q is not a size: write it as 500Mi or 1Gi", key, value)
	}
	if q.Sign() <= 0 || q.Value() <= 0 {
		return 0, Invalid("volumeAttribute %q: %s is not above 0", key, value)
	}
	return q.Value(), nil
}
