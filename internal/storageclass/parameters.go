package storageclass

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision/mkfs"
)

// The parameters that Berth knows. Those after MkfsOptionsKey are added to a
// CreateVolume request by the external-provisioner and are not for people to set.
const (
	PoolClassKey      = "poolClass"
	FSTypeKey         = "csi.storage.k8s.io/fstype"
	MkfsOptionsKey    = "mkfsOptions"
	claimNameKey      = "csi.storage.k8s.io/pvc/name"
	claimNamespaceKey = "csi.storage.k8s.io/pvc/namespace"
	volumeNameKey     = "csi.storage.k8s.io/pv/name"
)

// settable are the parameters for people.
var settable = []string{PoolClassKey, FSTypeKey, MkfsOptionsKey}

// DefaultFSType is made when neither class nor claim asks for another, but for claims whose
// pools have filesystems of their own: see FSTypeFor.
const DefaultFSType = v1alpha1.Ext4

// FSTypeFor is the filesystem of a claim that asks for none, of a class with that provisioner.
func FSTypeFor(provisioner v1alpha1.ProvisionerType) v1alpha1.FSType {
	if provisioner == v1alpha1.ProvisionerZFS {
		return v1alpha1.Dataset
	}
	return DefaultFSType
}

// CheckFSType returns an error unless volumes of a class can have the filesystem.
func CheckFSType(fsType v1alpha1.FSType, class *v1alpha1.PoolClass) error {
	if fsType == v1alpha1.Dataset && class.Spec.Provisioner != v1alpha1.ProvisionerZFS {
		return Invalid("filesystem %s is for PoolClasses with provisioner ZFS, and PoolClass %s has %s: use %s or %s",
			fsType, class.Name, class.Spec.Provisioner, v1alpha1.Ext4, v1alpha1.XFS)
	}
	return nil
}

// ErrInvalid is wrapped by every error of this package.
var ErrInvalid = errors.New("invalid StorageClass parameters")

// Parameters is what a StorageClass asks for.
type Parameters struct {
	// PoolClass that volumes come from.
	PoolClass string
	// FSType, or empty where the class does not say.
	FSType v1alpha1.FSType
	// MkfsOptions that filesystems are made with, one blank between words. Whether they
	// are allowed is for CheckMkfsOptions to say, once it is known for which filesystem.
	MkfsOptions string
	// ClaimNamespace and ClaimName of the claim that the volume is for; both
	// empty when the provisioner does not tell.
	ClaimNamespace, ClaimName string
}

// Parse reads parameters as they stand in a StorageClass or in a CreateVolume
// request. Its errors name the key and wrap ErrInvalid.
func Parse(parameters map[string]string) (Parameters, error) {
	var p Parameters
	for _, key := range slices.Sorted(maps.Keys(parameters)) {
		if err := p.set(key, parameters[key]); err != nil {
			return Parameters{}, err
		}
	}
	if p.PoolClass == "" {
		return Parameters{}, Invalid("parameter %q is required: it names a PoolClass", PoolClassKey)
	}
	if (p.ClaimName == "") != (p.ClaimNamespace == "") {
		return Parameters{}, Invalid("parameters %q and %q go together", claimNameKey, claimNamespaceKey)
	}
	return p, nil
}

func (p *Parameters) set(key, value string) (err error) {
	switch key {
	case PoolClassKey:
		p.PoolClass, err = objectName(key, value)
	case FSTypeKey:
		p.FSType, err = ParseFSType(value)
	case MkfsOptionsKey:
		p.MkfsOptions = mkfs.Normal(value)
	case claimNameKey:
		p.ClaimName, err = objectName(key, value)
	case claimNamespaceKey:
		p.ClaimNamespace, err = objectName(key, value)
	case volumeNameKey:
		_, err = objectName(key, value)
	default:
		err = Invalid("unknown parameter %q (known: %s)%s", key, strings.Join(settable, ", "), suggestion(key))
	}
	return err
}

// ParseFSType accepts the filesystems that Berth makes. Empty stays empty.
func ParseFSType(name string) (v1alpha1.FSType, error) {
	switch fsType := v1alpha1.FSType(name); fsType {
	case "", v1alpha1.Ext4, v1alpha1.XFS, v1alpha1.Dataset:
		return fsType, nil
	}
	return "", Invalid("filesystem %q is not supported (supported: %s, %s; %s in PoolClasses with provisioner ZFS)",
		name, v1alpha1.Ext4, v1alpha1.XFS, v1alpha1.Dataset)
}

func objectName(key, value string) (string, error) {
	if problems := validation.IsDNS1123Subdomain(value); len(problems) > 0 {
		return "", Invalid("parameter %q: %q is not an object's name: %s", key, value, problems[0])
	}
	return value, nil
}

// suggestion helps with the keys that people carry over from other drivers or
// write in another case.
func suggestion(key string) string {
	for _, known := range settable {
		short := known[strings.LastIndex(known, "/")+1:]
		if strings.EqualFold(key, known) || strings.EqualFold(key[strings.LastIndex(key, "/")+1:], short) {
			return fmt.Sprintf("; did you mean %q?", known)
		}
	}
	return ""
}

// Invalid makes an error that wraps ErrInvalid and says only its message: for
// what the parameters and the request say together.
func Invalid(format string, args ...any) error {
	return &parameterError{message: fmt.Sprintf(format, args...)}
}

// parameterError keeps the class out of the message: people see the message.
type parameterError struct{ message string }

func (e *parameterError) Error() string { return e.message }
func (e *parameterError) Unwrap() error { return ErrInvalid }
