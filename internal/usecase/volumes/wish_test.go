package volumes

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/storageclass"
)

const claimID = "00000000-0000-0000-0000-000000000001"

// wishOf is a claim of 1Gi and its class, as options change them.
func wishOf(options ...func(*corev1.PersistentVolumeClaim, *storagev1.StorageClass)) (*corev1.PersistentVolumeClaim, *storagev1.StorageClass) {
	claim, class := &corev1.PersistentVolumeClaim{}, &storagev1.StorageClass{Parameters: map[string]string{"poolClass": "fast"}}
	claim.Namespace, claim.Name, claim.UID = "shop", "data", claimID
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	for _, option := range options {
		option(claim, class)
	}
	return claim, class
}

func TestTheSchedulerAndTheProvisionerRequestTheSameVolume(t *testing.T) {
	plain := Request{
		Name: "pvc-" + claimID, Size: Size{Required: gi}, Mode: v1alpha1.Filesystem, PoolClass: "fast",
		Claim:       &v1alpha1.ClaimReference{Namespace: "shop", Name: "data", UID: claimID},
		Reservation: true,
	}
	with := func(change func(*Request)) Request {
		r := plain
		change(&r)
		return r
	}
	tests := map[string]struct {
		change func(*corev1.PersistentVolumeClaim, *storagev1.StorageClass)
		want   Request
	}{
		"a plain claim": {func(*corev1.PersistentVolumeClaim, *storagev1.StorageClass) {}, plain},
		"a filesystem of the class": {
			func(_ *corev1.PersistentVolumeClaim, s *storagev1.StorageClass) {
				s.Parameters["csi.storage.k8s.io/fstype"] = "xfs"
			},
			with(func(r *Request) { r.FSType = v1alpha1.XFS })},
		"a filesystem of ZFS": {
			func(_ *corev1.PersistentVolumeClaim, s *storagev1.StorageClass) {
				s.Parameters["csi.storage.k8s.io/fstype"] = "zfs"
			},
			with(func(r *Request) { r.FSType = v1alpha1.Dataset })},
		"options of mkfs and mount": {
			func(_ *corev1.PersistentVolumeClaim, s *storagev1.StorageClass) {
				s.Parameters["mkfsOptions"], s.MountOptions = "-I 512", []string{"noatime"}
			},
			with(func(r *Request) { r.MkfsOptions, r.MountOptions = "-I 512", []string{"noatime"} })},
		"a clone by dataSource has no options of a filesystem": {
			func(c *corev1.PersistentVolumeClaim, s *storagev1.StorageClass) {
				s.Parameters["mkfsOptions"], s.MountOptions = "-m reflink=0", []string{"inode64"}
				c.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: "source"}
			},
			plain},
		"a clone by dataSourceRef has no options of a filesystem": {
			func(c *corev1.PersistentVolumeClaim, s *storagev1.StorageClass) {
				s.Parameters["mkfsOptions"], s.MountOptions = "-m reflink=0", []string{"inode64"}
				c.Spec.DataSourceRef = &corev1.TypedObjectReference{Kind: "PersistentVolumeClaim", Name: "source"}
			},
			plain},
		"a claim of the volumeMode Filesystem": {
			func(c *corev1.PersistentVolumeClaim, _ *storagev1.StorageClass) {
				c.Spec.VolumeMode = new(corev1.PersistentVolumeFilesystem)
			},
			plain},
		"a claim with an empty VolumeAttributesClass": {
			func(c *corev1.PersistentVolumeClaim, _ *storagev1.StorageClass) {
				c.Spec.VolumeAttributesClassName = new("")
			},
			plain},
		"a bound claim with a later VolumeAttributesClass": {
			func(c *corev1.PersistentVolumeClaim, _ *storagev1.StorageClass) {
				c.Spec.VolumeAttributesClassName, c.Spec.VolumeName = new("gold"), "pvc-"+claimID
			},
			plain},
		"a block volume has no filesystem": {
			func(c *corev1.PersistentVolumeClaim, _ *storagev1.StorageClass) {
				c.Spec.VolumeMode = new(corev1.PersistentVolumeBlock)
			},
			with(func(r *Request) { r.Mode, r.FSType = v1alpha1.Block, "" })},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := forClaim(wishOf(test.change))
			if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
				t.Error(err, diff)
			}
		})
	}
}

// forClaim asks as the local driver does.
func forClaim(c *corev1.PersistentVolumeClaim, s *storagev1.StorageClass) (Request, error) {
	return ForClaim(driver.Local(), c, s)
}

func TestClaimsThatCannotBeMet(t *testing.T) {
	tests := map[string]func(*corev1.PersistentVolumeClaim, *storagev1.StorageClass){
		"ReadWriteMany is not supported": func(c *corev1.PersistentVolumeClaim, _ *storagev1.StorageClass) {
			c.Spec.AccessModes = append(c.Spec.AccessModes, corev1.ReadWriteMany)
		},
		"ReadOnlyMany is not supported": func(c *corev1.PersistentVolumeClaim, _ *storagev1.StorageClass) {
			c.Spec.AccessModes[0] = corev1.ReadOnlyMany
		},
		"a VolumeAttributesClass (gold) is not supported": func(c *corev1.PersistentVolumeClaim, _ *storagev1.StorageClass) {
			c.Spec.VolumeAttributesClassName = new("gold")
		},
		`"-U" is not supported for ext4`: func(_ *corev1.PersistentVolumeClaim, s *storagev1.StorageClass) {
			s.Parameters["mkfsOptions"] = "-U clear"
		},
		`mount option "inode64" is not supported for ext4`: func(_ *corev1.PersistentVolumeClaim, s *storagev1.StorageClass) {
			s.MountOptions = []string{"inode64"}
		},
		"no mkfs makes a filesystem of ZFS": func(_ *corev1.PersistentVolumeClaim, s *storagev1.StorageClass) {
			s.Parameters["csi.storage.k8s.io/fstype"], s.Parameters["mkfsOptions"] = "zfs", "-I 512"
		},
		`mount option "lazytime" is not supported for zfs`: func(_ *corev1.PersistentVolumeClaim, s *storagev1.StorageClass) {
			s.Parameters["csi.storage.k8s.io/fstype"], s.MountOptions = "zfs", []string{"lazytime"}
		},
		"unknown parameter": func(_ *corev1.PersistentVolumeClaim, s *storagev1.StorageClass) { s.Parameters["raid"] = "1" },
	}
	for told, change := range tests {
		_, err := forClaim(wishOf(change))
		if !errors.Is(err, storageclass.ErrInvalid) || !strings.Contains(err.Error(), told) {
			t.Errorf("got %v, want %q", err, told)
		}
	}
}

func TestFilesystemsThatContradictEachOther(t *testing.T) {
	w := Wish{Name: "x", Mode: v1alpha1.Filesystem, FSType: v1alpha1.Ext4, Parameters: storageclass.Parameters{PoolClass: "fast", FSType: v1alpha1.XFS}}
	if _, err := w.Request(); !errors.Is(err, storageclass.ErrInvalid) {
		t.Errorf("got %v", err)
	}
	for _, fsType := range []v1alpha1.FSType{w.Parameters.FSType, ""} { // values that agree
		agreed := w
		agreed.Parameters.FSType, agreed.FSType = fsType, v1alpha1.XFS
		if r, err := agreed.Request(); err != nil || r.FSType != v1alpha1.XFS {
			t.Errorf("%+v, %v", r, err)
		}
	}
	w.Mode = v1alpha1.Block
	if r, err := w.Request(); err != nil || r.FSType != "" {
		t.Errorf("a block volume: %+v, %v", r, err)
	}
}

func TestACopyIsMadeWithNoOptionsOfItsOwn(t *testing.T) {
	w := Wish{
		Name: "x", Mode: v1alpha1.Filesystem, Source: &v1alpha1.VolumeSource{Volume: "pvc-" + claimID},
		Parameters: storageclass.Parameters{PoolClass: "fast", MkfsOptions: "-I 512"}, MountOptions: []string{"inode64"},
	}
	r, err := w.Request()
	if err != nil || r.MkfsOptions != "" {
		t.Errorf("%+v, %v", r, err)
	}
	r.FSType = v1alpha1.Ext4 // the filesystem of its source
	if err := r.mountable(); !errors.Is(err, storageclass.ErrInvalid) {
		t.Errorf("a copy that could never be mounted: %v", err)
	}
}

func TestAVolumeThatNoClaimAsksForHasNone(t *testing.T) {
	r, err := Wish{Name: "x", Mode: v1alpha1.Filesystem, Parameters: storageclass.Parameters{PoolClass: "fast"}}.Request()
	if err != nil || r.Claim != nil {
		t.Errorf("%+v, %v", r, err)
	}
}
