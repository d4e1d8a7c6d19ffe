package ownership

import (
	"slices"
	"strings"
	"time"

	"berth.dev/berth/internal/lineage"
)

// Volume is the record of one volume: the part of the Volume object that
// decides who may write and which copies count. It changes only by
// compare-and-swap of the whole object. Rules never change one in place.
type Volume struct {
	Kind Kind
	// Factor is how many replicas the volume shall have, the primary included.
	Factor int
	// Sharing is for shared disks only.
	Sharing Sharing
	// Size is how many bytes the volume shall have. It only grows, but the record of a restored backup
	// may say less than copies have.
	Size int64
	// Deleting: the volume's data shall be destroyed. Only this field records that
	// decision. A vanished object is no such decision.
	Deleting bool

	// Epoch is the newest epoch opened, and Primary the node that opened it.
	Epoch   lineage.Epoch
	Primary Primary
	// RecoveryPoint is where the next epoch begins. Release sets it to the final
	// snapshot, a fence to the best copy that could be reached. It is fixed from
	// then until the next release or fence, except that a recorded loss may lower it.
	RecoveryPoint lineage.Point
	// Clean: the previous writer flushed everything and unmounted. If not, the next
	// mount begins with a consistency check.
	Clean bool
	// Lineage is the history of epochs; its head is Epoch.
	Lineage lineage.Lineage
	// Losses lists the writes that were given up, newest last.
	Losses []Loss

	// Keys are the reservation keys that were issued last, newest last.
	Keys []Key
	// FenceRequest asks a standby to take the reservation from the primary.
	FenceRequest FenceRequest
	// Writers are the other nodes that have opened an epoch, in order of node name, where several nodes write
	// at once (Sharing.ManyWriters). Rules decide about one writer at a time, the primary: On makes a node's
	// writer the primary, and Stored puts the writer with the newest epoch back in that place.
	Writers  []Writer
	Failover Failover
	// ExpireAt is when the attachments of an unused volume go; zero means never.
	ExpireAt time.Time
	// Replicas in order of node name.
	Replicas []Replica
}

// Primary is the node that may write, or was the last that might.
type Primary struct {
	Node string
	// Boot is the boot id of the node when it took over. A proof about an
	// earlier boot says nothing about this one.
	Boot  string
	Phase Phase
}

// Replica is one node's entry. Figures in it are lower bounds: the node may hold
// more.
type Replica struct {
	Node  string
	State State
	// Point is the newest snapshot the node reported.
	Point lineage.Point
	// Unstaged is the newest epoch which the node itself promises never to
	// write into again.
	Unstaged lineage.Epoch
	// Fenced is the epoch whose writer the node has shut out at the device.
	Fenced lineage.Epoch
	// Tries counts the failures to attach since the last success. RetryAt is when the
	// node tries again.
	Tries   int
	RetryAt time.Time
}

// Loss records writes that were acknowledged and given up by a failover.
type Loss struct {
	// Epoch is the epoch that was cut off, Kept its last point that survives.
	Epoch lineage.Epoch
	Kept  lineage.Point
	// Known is the newest point that was known to exist.
	Known lineage.Point
}

// maxLosses bounds the list in the record.
const maxLosses = 8

// FenceRequest names a standby that shall shut out the writer of Epoch.
type FenceRequest struct {
	Executor string
	Epoch    lineage.Epoch
}

// Failover is the administrator's policy.
type Failover struct {
	// Automatic allows failover without a person, if there is proof.
	Automatic bool
	// MaxDataLoss is the age of the recovery point beyond which a person must agree.
	MaxDataLoss time.Duration
	// Approved names the exact snapshot to which a person agreed to fall back.
	Approved lineage.Point
}

// Replica returns the node's entry.
func (v *Volume) Replica(node string) (Replica, bool) {
	for i := range v.Replicas {
		if v.Replicas[i].Node == node {
			return v.Replicas[i], true
		}
	}
	return Replica{}, false
}

// Holds tells whether the next writer will see p: it lies in the lineage and, while
// no epoch is open, not beyond the recovery point. Writes of an old primary after
// that point are not part of the volume any more.
func (v *Volume) Holds(p lineage.Point) bool {
	if !v.Kind.Traits().Data {
		return true
	}
	if end := v.end(); !end.IsZero() && p.Seq > end.Seq {
		return false
	}
	return v.Lineage.Contains(p)
}

// end is the last valid point, zero while a primary may still add points.
func (v *Volume) end() lineage.Point {
	if v.Primary.Phase.Open() {
		return lineage.Point{}
	}
	return v.RecoveryPoint
}

// Newest returns the newest of points that the volume holds, zero if it holds none. The points ascend.
func (v *Volume) Newest(points []lineage.Point) lineage.Point {
	for _, point := range slices.Backward(points) {
		if v.Holds(point) {
			return point
		}
	}
	return lineage.Point{}
}

// ownedBy tells whether the node has an open epoch.
func (v *Volume) ownedBy(node string) bool {
	if v.Primary.Node == node {
		return v.Primary.Phase.Open()
	}
	w, _ := v.writer(node)
	return w.Primary.Phase.Open()
}

// with returns a copy of the record that edit may change, entries included.
// Lineage, Losses and Keys are replaced by rules, never changed.
func (v *Volume) with(edit func(*Volume)) *Volume {
	next := *v
	next.Replicas = append(make([]Replica, 0, len(v.Replicas)+1), v.Replicas...)
	edit(&next)
	return &next
}

// entry returns the node's entry for editing, adding it in order if it is missing.
func (v *Volume) entry(node string) *Replica {
	i, found := slices.BinarySearchFunc(v.Replicas, node, func(r Replica, node string) int {
		return strings.Compare(r.Node, node)
	})
	if !found {
		v.Replicas = slices.Insert(v.Replicas, i, Replica{Node: node})
	}
	return &v.Replicas[i]
}

func (v *Volume) drop(node string) {
	for i := range v.Replicas {
		if v.Replicas[i].Node == node {
			v.Replicas = append(v.Replicas[:i], v.Replicas[i+1:]...)
			return
		}
	}
}

func (v *Volume) lose(l Loss) {
	from := max(0, len(v.Losses)+1-maxLosses)
	v.Losses = append(append(make([]Loss, 0, maxLosses), v.Losses[from:]...), l)
}
