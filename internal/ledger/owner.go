package ledger

import (
	"cmp"
	"fmt"
)

// OwnerKind says what kind of object a charge is for.
type OwnerKind uint8

// The kinds of owners.
const (
	// ByClaim: a PersistentVolumeClaim that has no Volume yet.
	ByClaim OwnerKind = iota + 1
	// ByVolume: a Volume, whether or not a claim uses it.
	ByVolume
	// ByPod: an inline volume, which lives and dies with its pod.
	ByPod
	// BySnapshot: a snapshot, which needs no volume.
	BySnapshot
)

// Owner identifies the object that a charge belongs to. Every charge has an owner,
// so every refund is exact: the owner's record says where and how much, never the
// event that ends the charge.
type Owner struct {
	Kind OwnerKind
	// ID is the claim's UID, the Volume's name, the pod's UID or the snapshot's id.
	ID string
	// Inline is the name of the inline volume in its pod's spec; empty otherwise.
	Inline string
}

// Claim is the owner for the claim with this UID.
func Claim(uid string) Owner { return Owner{Kind: ByClaim, ID: uid} }

// Volume is the owner for the Volume of this name.
func Volume(name string) Owner { return Owner{Kind: ByVolume, ID: name} }

// Inline is the owner for one inline volume of the pod with this UID.
func Inline(pod, volume string) Owner { return Owner{Kind: ByPod, ID: pod, Inline: volume} }

// VolumeSnapshot is the owner for the snapshot with this id.
func VolumeSnapshot(id string) Owner { return Owner{Kind: BySnapshot, ID: id} }

// String is for messages and for people.
func (o Owner) String() string {
	switch o.Kind {
	case ByClaim:
		return "claim " + o.ID
	case ByVolume:
		return "volume " + o.ID
	case ByPod:
		return "inline volume " + o.Inline + " of pod " + o.ID
	case BySnapshot:
		return "snapshot " + o.ID
	default:
		return fmt.Sprintf("owner of unknown kind %d", o.Kind)
	}
}

// Compare orders owners: whatever is done for several owners is done in this
// order, so that the same facts always give the same answer.
func (o Owner) Compare(p Owner) int {
	return cmp.Or(cmp.Compare(o.Kind, p.Kind), cmp.Compare(o.ID, p.ID), cmp.Compare(o.Inline, p.Inline))
}
