package luns

import "berth.dev/berth/api/v1alpha1"

// Choose returns the LUN that a claim of so many bytes would get now, nil for none, with the reason for people.
// A limit of zero is none.
func Choose(poolClass string, bytes, limit int64, luns []v1alpha1.LUN, volumes []v1alpha1.Volume) (lun *v1alpha1.LUN, shortage string) {
	return choose(wish{poolClass, bytes, limit}, luns, volumes)
}
