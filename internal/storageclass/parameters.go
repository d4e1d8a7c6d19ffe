package storageclass

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/mkfs"
)

// The parameters that Berth knows. The external-provisioner adds those after
// MkfsOptionsKey to a CreateVolume request; they are not for people to set.
const (
	PoolClassKey      = "poolClass"
	FSTypeKey         = "csi.storage.k8s.io/fstype"
	MkfsOptionsKey    = "mkfsOptions"
	claimNameKey      = "csi.storage.k8s.io/pvc/name"
	claimNamespaceKey = "csi.storage.k8s.io/pvc/namespace"
	volumeNameKey     = "csi.storage.k8s.io/pv/name"
)

// settable are the parameters that people may set.
var settable = []string{PoolClassKey, FSTypeKey, MkfsOptionsKey}

// DefaultFSType is made when neither class nor claim asks for another. The exceptions are
// claims whose pools have filesystems of their own: see FSTypeFor.
const DefaultFSType = v1alpha1.Ext4

// FSTypeFor is the filesystem of a claim that asks for none, if its class has that provisioner.
func FSTypeFor(provisioner v1alpha1.ProvisionerType) v1alpha1.FSType {
	return v1alpha1.FSType(provision.TraitsOf(string(provisioner)).Default())
}

// CheckFSType returns an error unless volumes of a class can have the filesystem or, if it is
// empty, be raw block volumes.
func CheckFSType(fsType v1alpha1.FSType, class *v1alpha1.PoolClass) error {
	traits, tree := provision.TraitsOf(string(class.Spec.Provisioner)), provision.TraitsOfTree(string(fsType))
	if traits.Type == "" { // not known here; nearly all types have block devices
		traits.Devices = true
	}
	if traits.Has(tree.Tree) {
		return nil
	}
	if fsType == "" {
		return Invalid("PoolClass %s has %s, which has no raw block volumes: use volumeMode Filesystem", class.Name, class.Spec.Provisioner)
	}
	others := "that have block devices"
	if tree.Type != "" {
		others = "with provisioner " + tree.Type
	}
	return Invalid("filesystem %s is for PoolClasses %s, and PoolClass %s has %s: use %s",
		fsType, others, class.Name, class.Spec.Provisioner, strings.Join(traits.Filesystems(), " or "))
}

// ErrInvalid is wrapped by every error of this package.
var ErrInvalid = errors.New("invalid StorageClass parameters")

// Parameters are the parameters of a StorageClass.
type Parameters struct {
	// PoolClass that volumes come from.
	PoolClass string
	// FSType, or empty if the class does not say.
	FSType v1alpha1.FSType
	// MkfsOptions that filesystems are made with, one blank between words.
	// CheckMkfsOptions decides whether they are allowed, once the filesystem is known.
	MkfsOptions string
	// ClaimNamespace and ClaimName of the claim that the volume is for; both
	// empty when the provisioner does not tell.
	ClaimNamespace, ClaimName string
}

// Parse reads parameters as they stand in a StorageClass or in a CreateVolume
// request. Its errors name the key and wrap ErrInvalid.
func Parse(parameters map[string]string) (Parameters, error) { return parse(parameters, settable) }

// parse names those that people may set where it refuses an unknown one.
func parse(parameters map[string]string, settable []string) (Parameters, error) {
	var p Parameters
	for _, key := range slices.Sorted(maps.Keys(parameters)) {
		if err := p.set(key, parameters[key], settable); err != nil {
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

func (p *Parameters) set(key, value string, settable []string) (err error) {
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
		err = Invalid("unknown parameter %q (known: %s)%s", key, strings.Join(settable, ", "), suggestion(key, settable))
	}
	return err
}

// ParseFSType accepts the filesystems that Berth makes. Empty stays empty.
func ParseFSType(name string) (v1alpha1.FSType, error) {
	if name == "" || slices.Contains(provision.Filesystems(), name) {
		return v1alpha1.FSType(name), nil
	}
	supported := []string{fmt.Sprintf("%s, %s", v1alpha1.Ext4, v1alpha1.XFS)}
	for _, tree := range provision.Trees() {
		supported = append(supported, fmt.Sprintf("%s in PoolClasses with provisioner %s", tree, provision.TraitsOfTree(tree).Type))
	}
	return "", Invalid("filesystem %q is not supported (supported: %s)", name, strings.Join(supported, "; "))
}

func objectName(key, value string) (string, error) {
	if problems := validation.IsDNS1123Subdomain(value); len(problems) > 0 {
		return "", Invalid("parameter %q: %q is not an object's name: %s", key, value, problems[0])
	}
	return value, nil
}

// suggestion helps with the keys that people carry over from other drivers or
// write in another case.
func suggestion(key string, settable []string) string {
	for _, known := range settable {
		short := known[strings.LastIndex(known, "/")+1:]
		if strings.EqualFold(key, known) || strings.EqualFold(key[strings.LastIndex(key, "/")+1:], short) {
			return fmt.Sprintf("; did you mean %q?", known)
		}
	}
	return ""
}

// Invalid makes an error that wraps ErrInvalid and says only its message. It is for
// errors that depend on the parameters and the request together.
func Invalid(format string, args ...any) error {
	return &parameterError{message: fmt.Sprintf(format, args...)}
}

// parameterError keeps the class out of the message: people see the message.
type parameterError struct{ message string }

func (e *parameterError) Error() string { return e.message }
func (e *parameterError) Unwrap() error { return ErrInvalid }
