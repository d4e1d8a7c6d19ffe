package luns

import (
	"fmt"
	"time"

	"berth.dev/berth/api/v1alpha1"
)

// Facts are what the status of a LUN follows from.
type Facts struct {
	// Holder is the Volume that the LUN's status names, by name and UID. It is nil if the API server has none.
	Holder *v1alpha1.Volume
	// Retained: a PersistentVolume stands for the Holder whose reclaim policy is not Delete.
	Retained bool
	// LUNs are all of them, and Volumes those of all shared disks.
	LUNs    []v1alpha1.LUN
	Volumes []v1alpha1.Volume
	// Nodes are all that the cluster has.
	Nodes []Node
	// Now is the time of day, and FreshID a random id for an epoch.
	Now     time.Time
	FreshID string
}

// Node is a node as a place for a wipe.
type Node struct {
	Name string
	// Fits: its agent of shared disks can be asked.
	Fits bool
	// OutOfService: an administrator has declared it dead.
	OutOfService bool
}

// Judge returns the status that a LUN should have. A Volume that was made by hand and names the disk has the
// LUN as one that was handed out: when it is gone, the LUN is Released.
func Judge(l *v1alpha1.LUN, f *Facts) v1alpha1.LUNStatus {
	had := l.Status.Volume
	switch {
	case over(l):
		return wiped(l, f)
	case had != nil && f.Holder == nil:
		return byHand(had, "its Volume is gone, and nothing proves that each node has let go of the disk")
	case had != nil && mayHave(f.Holder, l) && (Unused(f.Holder) || Ended(f.Holder)):
		return release(l, f)
	case had != nil && mayHave(f.Holder, l):
		return handedOut(l, had, f)
	}
	// A Volume that has another disk never had this one.
	if v := namedBy(l, f.Volumes); v != nil {
		return handedOut(l, &v1alpha1.LUNVolume{Name: v.Name, UID: v.UID}, f)
	}
	return available(l, f)
}

// mayHave says whether a Volume has the disk of a LUN, or may still get it.
func mayHave(v *v1alpha1.Volume, l *v1alpha1.LUN) bool {
	return diskOf(v) == nil || same(*diskOf(v), l.Spec.Disk)
}

func available(l *v1alpha1.LUN, f *Facts) v1alpha1.LUNStatus {
	if other := twin(l, f.LUNs); other != "" {
		return v1alpha1.LUNStatus{State: v1alpha1.LUNUnavailable, Message: fmt.Sprintf("LUN %s names the same disk: delete one of the two", other)}
	}
	return v1alpha1.LUNStatus{State: v1alpha1.LUNAvailable}
}

// handedOut is the status of a LUN that a volume has. It says what else names the disk.
func handedOut(l *v1alpha1.LUN, by *v1alpha1.LUNVolume, f *Facts) v1alpha1.LUNStatus {
	return v1alpha1.LUNStatus{State: v1alpha1.LUNBound, Volume: by, Message: disputes(l, by, f)}
}

func disputes(l *v1alpha1.LUN, by *v1alpha1.LUNVolume, f *Facts) string {
	for i := range f.Volumes {
		v := &f.Volumes[i]
		if d := diskOf(v); d != nil && same(*d, l.Spec.Disk) && v.UID != by.UID {
			return fmt.Sprintf("Volume %s names this disk, too: two volumes on one disk destroy each other's data", v.Name)
		}
	}
	if other := twin(l, f.LUNs); other != "" {
		return fmt.Sprintf("LUN %s names the same disk: delete it", other)
	}
	return ""
}
