// Package attach decides where the attachments of shared disks go.
//
// Refuses says whether a node may get an attachment of a volume at all, and why not. A Board knows all
// nodes, volumes and pods, and answers for one volume about every node: whether an attachment fits there,
// how many slots are free for it, whether the volume's own attachment makes way for another volume, and in
// which order nodes are to be tried. ownership.OverseeRules take the first node that fits.
//
// # Slots
//
// Each attachment takes a slot of its node until its entry has left the record. A pod that is bound to a
// node and whose volume has no attachment there waits for a slot, and no standby gets it. Of several that
// wait, those whose disk has a free share come first, then by name. If there are more of those than free
// slots, ownership.Yielding chooses the standby that makes way.
//
// # One set of nodes for a pod's volumes
//
// A pod can only run where all of its volumes can be used. So volumes that a pod uses together are placed
// together: the next standby goes to a node from which it is still possible to have both as many nodes in
// common, and as many standbys in all, as before. That is an exact search over the volumes of those pods, so
// that placing them one by one ends as well as placing them at once. No slot is held meanwhile: a volume of
// other pods may take one in between, and the search begins anew with what is left.
//
// Among the nodes that are as good, one is preferred that more of those volumes are on already, then one in
// a zone with fewer replicas of the volume, then one with more free slots, then by name.
package attach
