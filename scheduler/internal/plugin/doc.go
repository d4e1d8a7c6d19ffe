// Package plugin is Berth's plugin for kube-scheduler: it places pods by the
// ledger and reserves the room for their volumes.
//
//	PreFilter         what does the pod want; Skip if it is nothing of Berth's
//	Filter            does it all fit on the node, together
//	PreScore, Score   where it lies best; nodes that hold a replica first
//	Reserve           room is held in the ledger, for all volumes or none
//	PreBind           the Volumes are written with their placement
//	Unreserve         the hold is given back, by the ledger's own record
//
// # A pod without volumes of Berth
//
// Such a pod costs one look at its volumes. All later phases are skipped, nothing
// is written for it, and its signature for batching is empty.
//
// # From hold to Volume
//
// Reserve is a change in memory and nothing else, so the scheduler may call it
// for simulations as often as it likes. PreBind makes the hold durable: it creates
// the Volume by the use case that CreateVolume uses, before VolumeBinding tells
// the provisioner of the node, and waits a moment for the node's answer. It must
// therefore come before VolumeBinding and not beside it; Order refuses to start
// otherwise.
//
// # Static volumes
//
// A claim may match a PersistentVolume that exists already. VolumeBinding's binder
// decides for each node which one; the plugin asks it only where the claim's class
// has such volumes at all. A claim that is matched needs no room and gets no
// Volume.
//
// # Clones and restores
//
// A claim that begins as a copy goes where its source is. Filter refuses the other
// nodes one by one. If PreFilter left them out, people would not be told why. The
// plugin reads the source again after it has noted the pod as refused: the source
// comes by watches that the scheduler's queue knows nothing of.
//
// # Refusals
//
// Evicting pods frees their inline volumes and nothing else. Where that would do,
// a refusal is Unschedulable and preemption may go on; everywhere else it is
// UnschedulableAndUnresolvable.
package plugin
