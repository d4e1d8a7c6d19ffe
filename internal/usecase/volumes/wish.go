package volumes

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/storageclass"
)

// Wish has the inputs that shape a volume. CreateVolume and the scheduler, which
// writes the Volume before CreateVolume is called, must come to the same Request.
// Otherwise CreateVolume finds a volume that differs from its request.
type Wish struct {
	// Name is the CSI name.
	Name       string
	Parameters storageclass.Parameters
	Mode       v1alpha1.VolumeMode
	// FSType that is asked for in addition to the parameters; may be empty.
	FSType v1alpha1.FSType
	// MountOptions of the class; they count for a filesystem alone.
	MountOptions []string
	Size         Size
	Source       *v1alpha1.VolumeSource
	Topology     Topology
}

// Request is the request for the wish. Its errors wrap storageclass.ErrInvalid.
func (w Wish) Request() (Request, error) {
	r := Request{
		Name: w.Name, Size: w.Size, Mode: w.Mode, PoolClass: w.Parameters.PoolClass, Source: w.Source, Topology: w.Topology,
	}
	if w.Parameters.ClaimName != "" {
		r.Claim = &v1alpha1.ClaimReference{Namespace: w.Parameters.ClaimNamespace, Name: w.Parameters.ClaimName, UID: claimUID(w.Name)}
	}
	if w.Mode == v1alpha1.Block {
		return r, nil
	}
	if w.FSType != "" && w.Parameters.FSType != "" && w.FSType != w.Parameters.FSType {
		return Request{}, storageclass.Invalid("the volume capability asks for %s and parameter %q for %s",
			w.FSType, storageclass.FSTypeKey, w.Parameters.FSType)
	}
	r.FSType = cmp.Or(w.FSType, w.Parameters.FSType)
	r.MountOptions = w.MountOptions
	if w.Source == nil { // a copy has the filesystem of its source
		r.MkfsOptions = w.Parameters.MkfsOptions
	}
	return r, cmp.Or(r.makeable(), r.mountable())
}

// makeable returns nil if the filesystem can be made as asked. If none is named it is
// the default of the class. Of the defaults only ext4 takes options of mkfs.
func (r Request) makeable() error {
	return storageclass.CheckMkfsOptions(cmp.Or(r.FSType, storageclass.DefaultFSType), r.MkfsOptions)
}

// mountable returns nil if the filesystem can be mounted as asked, as far as the
// filesystem is known.
func (r Request) mountable() error {
	if r.FSType == "" && r.Source == nil { // the default of the class, which is not known
		for _, tree := range provision.Trees() {
			if storageclass.CheckMountOptions(v1alpha1.FSType(tree), r.MountOptions) == nil {
				return nil
			}
		}
		return storageclass.CheckMountOptions(storageclass.DefaultFSType, r.MountOptions)
	}
	return storageclass.CheckMountOptions(r.FSType, r.MountOptions)
}

// Bytes is the size in bytes that the request asks the node for.
func (r Request) Bytes() (int64, error) { return r.Size.bytes(r.Mode, r.FSType) }

// ForClaim returns the request that a driver's CreateVolume will be called with for a claim of a
// class of the driver, as a reservation. It makes it from the two as the external-provisioner does.
// The caller adds topology and pool.
func ForClaim(d driver.Driver, claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) (Request, error) {
	parameters, err := storageclass.Parse(class.Parameters)
	if err != nil {
		return Request{}, err
	}
	parameters.ClaimNamespace, parameters.ClaimName = claim.Namespace, claim.Name
	for _, mode := range claim.Spec.AccessModes {
		if refusal := d.Supports(mode); refusal != "" {
			return Request{}, storageclass.Invalid("%s", refusal)
		}
	}
	if attributes := claim.Spec.VolumeAttributesClassName; claim.Spec.VolumeName == "" && attributes != nil && *attributes != "" {
		return Request{}, storageclass.Invalid("a VolumeAttributesClass (%s) is not supported", *attributes)
	}
	size := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	w := Wish{
		Name:       "pvc-" + string(claim.UID),
		Parameters: parameters,
		Mode:       v1alpha1.Filesystem,
		Size:       Size{Required: size.Value()},
	}
	if claim.Spec.DataSource == nil && claim.Spec.DataSourceRef == nil { // the source decides the filesystem of a copy
		w.MountOptions = class.MountOptions
	} else {
		w.Parameters.MkfsOptions = ""
	}
	if mode := claim.Spec.VolumeMode; mode != nil && *mode == corev1.PersistentVolumeBlock {
		w.Mode = v1alpha1.Block
	}
	r, err := w.Request()
	r.Reservation = true
	return r, err
}

// InlineBytes is the size of an inline volume in bytes: at least the minimum of its filesystem.
func InlineBytes(v storageclass.Inline) (int64, error) {
	fsType := cmp.Or(v.FSType, storageclass.DefaultFSType)
	return Size{Required: v.Size}.bytes(v1alpha1.Filesystem, fsType)
}
