// Package ordered is the node's side of shared disks that a controller attaches.
//
// The node does three things. It places orders (ownership.Order) and reads their answers. It lets go of a device
// before it orders a detach, so that nothing has the device open when the disk goes. And it finds the device by
// its identity, once a controller says that the disk is attached: neither that word nor a path proves which disk
// it is.
//
// What the machine does by itself (finding a device, letting go of it, reservations, flushes) is another
// shared.Disks, whose Attach looks for devices and whose Detach makes the kernel forget one.
package ordered
