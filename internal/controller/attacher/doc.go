// Package attacher carries out what nodes order where controllers attach disks: at a shared.Cloud.
//
// Which disk goes to which node is decided elsewhere (internal/decide/attach, fed by internal/controller/places)
// and stands in the volume's record. The node places the order, because only the node knows when it has let go
// of a device. What to do next about a machine decides attach.Machine; this package does it.
//
// Nothing that an Attacher remembers matters: a new one begins each open order again, and the cloud finds what
// has been done already.
package attacher
