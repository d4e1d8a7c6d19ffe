package schedule

import (
	"fmt"
	"slices"

	storagev1 "k8s.io/api/storage/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/ledger"
	"berth.dev/berth/internal/usecase/volumes"
)

// add adds the claim to the pod's volumes, if it is the driver's.
func (c *podClaim) add(d driver.Driver, to func() *PodVolumes) {
	if !c.ours {
		return
	}
	v := to()
	v.Holders = append(v.Holders, c.holders...)
	if c.source != nil {
		v.Sources = append(v.Sources, c.source)
	}
	switch {
	case c.problem != "":
		v.unready(c.problem)
	case c.claim.Spec.VolumeName != "": // bound
	case !waits(c.class):
		v.unready(fmt.Sprintf("claim %q is to be bound before the pod is scheduled, and is not yet", c.name))
	default:
		v.want(d, c)
	}
}

// waits reports whether claims of the class wait for their pod.
func waits(class *storagev1.StorageClass) bool {
	return class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
}

// want adds a claim that is to be placed. A claim that the pod names twice is one.
func (v *PodVolumes) want(d driver.Driver, c *podClaim) {
	if slices.ContainsFunc(v.Wanted, func(w Wanted) bool { return w.Claim != nil && w.Claim.UID == c.claim.UID }) {
		return
	}
	request, err := volumes.ForClaim(d, c.claim, c.class)
	if err != nil {
		v.unready(fmt.Sprintf("claim %q: %v", c.name, err))
		return
	}
	made := request
	if c.pools != nil && sourceOf(c.claim) == nil { // a copy has the filesystem of its source
		if made, err = request.In(c.pools); err != nil {
			v.unready(fmt.Sprintf("claim %q: %v", c.name, err))
			return
		}
	}
	bytes, err := made.Bytes()
	if err != nil {
		v.unready(fmt.Sprintf("claim %q: %v", c.name, err))
		return
	}
	w := Wanted{
		Demand: ledger.Demand{Owner: ledger.Claim(string(c.claim.UID)), Class: request.PoolClass, Bytes: bytes, Feature: made.Feature()},
		Claim:  c.claim, Class: c.class, Request: request, Populated: sourceOf(c.claim) != nil, Source: c.source,
	}
	if w.Source != nil {
		w.Demand.Beside = w.Source.Places
	}
	if w.Populated {
		w.Request = volumes.Request{} // no scheduler shall make a blank volume of it
	}
	v.Wanted = append(v.Wanted, w)
}

// holders returns the nodes with a replica of a volume, and how good it is.
func holders(v *v1alpha1.Volume) []Holder {
	var list []Holder
	for i := range v.Status.Replicas {
		entry := &v.Status.Replicas[i]
		if entry.State == v1alpha1.ReplicaGone || v.Wish(entry.Node) == nil {
			continue
		}
		h := Holder{Volume: v.Name, Node: entry.Node, Standing: Unfit}
		switch {
		case v.Status.Ownership != nil && v.Status.Ownership.Primary.Node == entry.Node, slices.Contains(v.Status.Ownership.Owners(), entry.Node):
			h.Standing = Primary
		case entry.State == v1alpha1.ReplicaReady && entry.Ready:
			h.Standing = Standby
		}
		list = append(list, h)
	}
	return list
}
