// Package shared is the interface of a provisioner of shared disks, as one node sees it: disks that
// are attached to several nodes at once, and that refuse all writers but the holder of a reservation.
//
// "Shared disk" is the word of docs/ownership.md, of Azure and of vSphere. An attachment is one
// node's part of it, and the reservation belongs to the disk, so neither names the package.
//
// The interface follows SCSI persistent reservations (SPC-4, type Write Exclusive) as Linux offers
// them by the ioctls IOC_PR_*. It fits a target that the node logs in to by itself (iSCSI), and a
// cloud whose controller attaches disks slowly: Attach only begins, and View.Link tells how far it is. Who
// attaches is a capability. Where a controller does, package ordered is the node's side, Cloud is what the
// controller asks, and package simcloud is one that is simulated.
//
// Nothing here decides. Package ownership says which call comes next, and the agent's owner makes it.
package shared
