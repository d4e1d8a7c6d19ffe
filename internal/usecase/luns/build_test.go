package luns

import (
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/driver"
)

const gi = int64(1) << 30

// disk is one by a number.
func disk(number string) v1alpha1.SharedDisk {
	return v1alpha1.SharedDisk{Handle: "iscsi://10.0.0.5/iqn.2026-01.com.example:array/" + number, Identity: "naa." + number}
}

// inOtherWords is the disk of a number by another portal of its target, and by its serial number.
func inOtherWords(number string) v1alpha1.SharedDisk {
	return v1alpha1.SharedDisk{Handle: "iscsi://10.0.0.5:3260,10.0.0.6/iqn.2026-01.com.example:array/" + number, Identity: "serial." + number}
}

// lun is one of the class san, with a disk and a size of its own.
func lun(name string, size int64, change ...func(*v1alpha1.LUN)) *v1alpha1.LUN {
	l := &v1alpha1.LUN{Spec: v1alpha1.LUNSpec{
		Disk: disk(name), Capacity: *resource.NewQuantity(size, resource.BinarySI), PoolClass: "san",
	}}
	l.Name = name
	for _, c := range change {
		c(l)
	}
	return l
}

// of makes a volume the one that has a LUN.
func of(v *v1alpha1.Volume) func(*v1alpha1.LUN) {
	return func(l *v1alpha1.LUN) {
		l.Status = v1alpha1.LUNStatus{State: v1alpha1.LUNBound, Volume: &v1alpha1.LUNVolume{Name: v.Name, UID: v.UID}}
	}
}

func isReleased(l *v1alpha1.LUN) { l.Status.State = v1alpha1.LUNReleased }

// volume is of a shared disk; without a number it has none yet.
func volume(name, number string) *v1alpha1.Volume {
	v := &v1alpha1.Volume{}
	v.Name, v.UID = name, types.UID("uid of "+name)
	v.Spec.Driver = driver.Disk().Name
	v.Spec.Capacity = *resource.NewQuantity(gi, resource.BinarySI)
	v.Spec.Replication = v1alpha1.Replication{Factor: 1, Kind: v1alpha1.ReplicationAttachments, Attachments: &v1alpha1.Attachments{MaxShares: 1}}
	if number != "" {
		d := disk(number)
		v.Spec.Replication.Attachments.Disk = &d
	}
	return v
}

func values[T any](pointers ...*T) (list []T) {
	for _, p := range pointers {
		list = append(list, *p)
	}
	return list
}
