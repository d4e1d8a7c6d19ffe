package luns

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/quantity"
	"berth.dev/berth/internal/record"
)

// What follows here decides which data is destroyed:
//
//	1  the Volume is being deleted, and its record says that no node has the disk any more
//	2  the controller orders the wipe in the LUN's status, while the Volume's finalizer still waits for that
//	3  the Volume goes
//	4  the controller names a node, with a reservation key of its own
//	5  the agent of that node wipes the disk, detaches it, and takes the node's name off the LUN
//	6  the controller makes the LUN Available
//
// Where a step lacks its proof, the LUN stays Released until an administrator acts.

// Ended says whether the record of a Volume proves that no node writes to its disk, or ever gets it again. The Volume
// is being deleted, which nothing takes back, no epoch is open, and each node that was counted has said by itself that
// it has detached the disk, or the cluster has no such node any more. The machine of the latter may be suspended, and
// write when it resumes: the disk refuses it, during the wipe and after it. A Volume without a record proves nothing.
func Ended(v *v1alpha1.Volume) bool {
	r, err := record.From(v)
	return err == nil && r.Deleting && len(r.Writing()) == 0 &&
		!slices.ContainsFunc(r.Replicas, func(e ownership.Replica) bool { return e.State != ownership.Gone })
}

// Unused says whether no node has had the disk by this Volume, or ever gets it. The Volume is being deleted, which
// nothing takes back, and names no disk, or has no record yet: neither is written any more then. A backup may have lost
// a record; then the disk still keeps out who comes without the key of the last writer, unless its target forgets that.
func Unused(v *v1alpha1.Volume) bool {
	a := v.Spec.Replication.Attachments
	return v.DeletionTimestamp != nil && (diskOf(v) == nil || v.Status.Ownership == nil && a.Blank && a.Persistent)
}

// Awaits says whether a Volume that has ended, or was never used, still waits for its LUN, which is to know that first.
// Afterwards nothing proves it.
func Awaits(v *v1alpha1.Volume, luns []v1alpha1.LUN) bool {
	return (Unused(v) || Ended(v)) && slices.ContainsFunc(luns, func(l v1alpha1.LUN) bool {
		return l.Has(v) && l.Status.State == v1alpha1.LUNBound && mayHave(v, &l)
	})
}

// Destroys says whether a change of a LUN's status leads to a wipe, or hands a disk out: what it follows from must
// be the API server's own word then.
func Destroys(from, to *v1alpha1.LUNStatus) bool {
	return to.Wipe != nil && (from.Wipe == nil || to.Wipe.Epoch != from.Wipe.Epoch) || from.Wipe != nil && to.Wipe == nil
}

// byHand is the status of a LUN whose disk Berth does not wipe.
func byHand(had *v1alpha1.LUNVolume, why string) v1alpha1.LUNStatus {
	return v1alpha1.LUNStatus{State: v1alpha1.LUNReleased, Volume: had, Message: why +
		". Berth does not wipe the disk, which may have data: to hand it out again wipe it (blkdiscard --zeroout), delete this LUN, and declare it anew"}
}

// release is the status of a LUN whose Volume has ended, or was never used, and is still there: it orders the wipe, unless the data
// is to stay.
func release(l *v1alpha1.LUN, f *Facts) v1alpha1.LUNStatus {
	had, r := l.Status.Volume, f.Holder.Status.Ownership
	switch {
	case Unused(f.Holder):
		w := &v1alpha1.LUNWipe{Mode: f.Holder.Spec.VolumeMode, Epoch: v1alpha1.Epoch{Number: 1, ID: f.FreshID}, Outcome: v1alpha1.LUNCleared}
		return pending(had, w, "its Volume was deleted before a node could have the disk: there is nothing to wipe")
	case f.Retained:
		return byHand(had, "its Volume was deleted, and the PersistentVolume says that the data is to be retained")
	case !f.Holder.Spec.Replication.Attachments.Blank:
		return byHand(had, "its Volume was made by hand, on a disk that an administrator named")
	}
	w := &v1alpha1.LUNWipe{Mode: f.Holder.Spec.VolumeMode, Epoch: r.Epoch, Keys: keysOf(r)}
	// No node ever opened an epoch, so none has written. A backup from before the first mount says so, too, of a disk
	// full of data: a target that forgets its reservations would show that to the next volume.
	if r.Primary.Node == "" && f.Holder.Spec.Replication.Attachments.Persistent {
		w.Outcome = v1alpha1.LUNCleared
		return pending(had, w, "no node has ever written to the disk: there is nothing to wipe")
	}
	return pending(had, w, "the disk is to be wiped")
}

// keysOf are the keys from which a wipe may take the disk: the last that were issued, and those of all writers, of whom
// one may have opened its epoch long ago and still have the reservation.
func keysOf(r *v1alpha1.Ownership) (keys []v1alpha1.ReservationKey) {
	for i := range r.Writers {
		k := v1alpha1.ReservationKey{Node: r.Writers[i].Node, Epoch: r.Writers[i].Epoch}
		if !slices.Contains(r.Keys, k) {
			keys = append(keys, k)
		}
	}
	last := r.Keys[max(0, min(len(r.Keys), len(keys)+len(r.Keys)-maxKeys)):]
	return append(keys[:min(len(keys), maxKeys)], last...)
}

// pending is the status of a LUN that waits for a node that wipes it.
func pending(had *v1alpha1.LUNVolume, w *v1alpha1.LUNWipe, why string) v1alpha1.LUNStatus {
	if w.Problem != "" {
		why += "; the last attempt failed: " + w.Problem
	}
	return v1alpha1.LUNStatus{State: v1alpha1.LUNReleased, Volume: had, Wipe: w, Message: why}
}

// wiped is the status of a LUN whose volume has ended, from the release until it is free.
func wiped(l *v1alpha1.LUN, f *Facts) v1alpha1.LUNStatus {
	had, w := l.Status.Volume, l.Status.Wipe.DeepCopy()
	switch {
	case w == nil:
		kept := l.Status
		if kept.Message == "" {
			kept = byHand(had, "its Volume is gone")
		}
		return kept
	case w.Node == "" && w.Outcome == v1alpha1.LUNCleared && f.Holder != nil: // else the Volume would get it again
		return pending(had, w, "there is nothing to wipe, and the Volume is about to go")
	case w.Node == "" && w.Outcome == v1alpha1.LUNCleared:
		return available(l, f)
	case w.Node == "" && w.Outcome == v1alpha1.LUNWipeFailed:
		return failed(had, w, f.Now.Add(pause(w.Tries)))
	case w.Node == "":
		return begin(l, w, f)
	}
	if gone := f.without(w.Node); gone != "" {
		// Its session may live. The next node takes the reservation from its key, and wipes from the
		// beginning, so the disk refuses what this one still sends.
		w.Node, w.Problem = "", gone
		return failed(had, w, f.Now)
	}
	return v1alpha1.LUNStatus{State: v1alpha1.LUNWiping, Volume: had, Wipe: w, Message: progress(l, w)}
}

// failed lets another node try later.
func failed(had *v1alpha1.LUNVolume, w *v1alpha1.LUNWipe, at time.Time) v1alpha1.LUNStatus {
	w.Outcome, w.Tries, w.RetryAt = "", w.Tries+1, &metav1.Time{Time: at.Truncate(time.Second)}
	return pending(had, w, "another node is asked to wipe the disk")
}

// A wipe that failed is tried again after a pause, which doubles.
const (
	retryFirst = 10 * time.Second
	retryMost  = 10 * time.Minute
)

func pause(tries int32) time.Duration { return min(retryMost, retryFirst<<min(tries, 10)) }

func progress(l *v1alpha1.LUN, w *v1alpha1.LUNWipe) string {
	said := fmt.Sprintf("node %s wipes the disk", w.Node)
	switch {
	case w.Outcome != "":
		said = fmt.Sprintf("node %s detaches the disk", w.Node)
	case w.Done > 0:
		said += fmt.Sprintf(": %s of %s are done", quantity.Bytes(w.Done), quantity.Bytes(l.Spec.Capacity.Value()))
	}
	if w.Problem != "" {
		said += "; what went wrong last: " + w.Problem
	}
	return said
}

// begin names a node, or says why it names none.
func begin(l *v1alpha1.LUN, w *v1alpha1.LUNWipe, f *Facts) v1alpha1.LUNStatus {
	had := l.Status.Volume
	node, why := "", ""
	switch v := namedBy(l, f.Volumes); {
	case l.DeletionTimestamp != nil:
		why = "this LUN is being deleted, so the disk is not wiped"
	case v != nil:
		why = fmt.Sprintf("the disk is wiped when no Volume names it any more, and Volume %s does", v.Name)
	case twin(l, f.LUNs) != "":
		why = fmt.Sprintf("LUN %s names the same disk, so it is not wiped: delete one of the two", twin(l, f.LUNs))
	case !l.Spec.Persistent:
		why = "the target may forget reservations (spec.persistent is not set), so nothing keeps a late writer out, and the disk is not wiped: " +
			"wipe it (blkdiscard --zeroout), delete this LUN, and declare it anew"
	case w.RetryAt != nil && w.RetryAt.After(f.Now) && !w.RetryAt.After(f.Now.Add(retryMost)): // or a clock was wrong
		why = fmt.Sprintf("another node is asked to wipe the disk at %s", w.RetryAt.UTC().Format(time.RFC3339))
	default:
		node, why = f.choose(w)
	}
	if node == "" {
		return pending(had, w, why)
	}
	w.Epoch = v1alpha1.Epoch{Number: w.Epoch.Number + 1, ID: f.FreshID}
	w.Keys = append(w.Keys, v1alpha1.ReservationKey{Node: node, Epoch: w.Epoch})
	w.Keys = w.Keys[max(0, len(w.Keys)-maxKeys):]
	w.Node, w.Done, w.RetryAt = node, 0, nil
	return v1alpha1.LUNStatus{State: v1alpha1.LUNWiping, Volume: had, Wipe: w, Message: progress(l, w)}
}

// maxKeys is how many keys the LUN lists, as the record does.
const maxKeys = 8

// without says why a node that was named can not be waited for, empty if it can.
func (f *Facts) without(name string) string {
	i := slices.IndexFunc(f.Nodes, func(n Node) bool { return n.Name == name })
	switch {
	case i < 0:
		return fmt.Sprintf("node %s does not exist any more", name)
	case f.Nodes[i].OutOfService:
		return fmt.Sprintf("node %s is out of service", name)
	}
	return ""
}

// choose returns the node that wipes, or says why none can. The first is one that had the disk: it reaches it.
// After a failure it is the next one by name, so each has its turn. A node wipes one disk at a time.
func (f *Facts) choose(w *v1alpha1.LUNWipe) (node, why string) {
	fit := slices.DeleteFunc(slices.Clone(f.Nodes), func(n Node) bool { return !n.Fits || n.OutOfService || f.busy(n.Name) })
	if len(fit) == 0 {
		return "", "each node with an agent of shared disks is away, cordoned, or wipes another disk: the wipe waits for one"
	}
	slices.SortFunc(fit, func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
	if w.Tries > 0 && len(w.Keys) > 0 {
		last := w.Keys[len(w.Keys)-1].Node
		if i := slices.IndexFunc(fit, func(n Node) bool { return n.Name > last }); i >= 0 {
			return fit[i].Name, ""
		}
		return fit[0].Name, ""
	}
	for _, k := range slices.Backward(w.Keys) {
		if slices.ContainsFunc(fit, func(n Node) bool { return n.Name == k.Node }) {
			return k.Node, ""
		}
	}
	return fit[0].Name, ""
}

// busy says whether a node wipes a disk.
func (f *Facts) busy(node string) bool {
	return slices.ContainsFunc(f.LUNs, func(l v1alpha1.LUN) bool { return l.Status.Wipe != nil && l.Status.Wipe.Node == node })
}
