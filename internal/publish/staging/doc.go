// Package staging puts the volumes of one node where pods find them: the use
// cases behind the CSI node service.
//
// The authority is the provisioner's record on the node and the kernel's mount
// table. The package keeps no state and does not ask the API server. So pods start
// and stop while the API server is away, and a restart changes nothing.
//
// What the package guarantees:
//
//   - Nothing here creates a volume. A missing record or device is an error.
//   - A filesystem is made only on a volume whose record says blank and whose
//     Volume says Filesystem. A blank record alone is no proof: a raw block volume that
//     an older Berth has staged is blank, and full of its owner's data.
//   - A raw block volume is recorded as given to a pod before a pod has it.
//   - A call with a path outside the kubelet's directory does nothing and fails.
//   - An Owner encloses the use of a volume: it takes the volume before the first look at the
//     device, checks that it is taken in one step with each bind, and gives it up after the last
//     unmount. Volumes with one copy have nothing to take.
//   - A volume has one call at a time: a second one is refused at once, and none
//     waits for another volume. While the Owner fetches data no call is under way yet. Stage, Publish,
//     Unstage and Expand also take the lock that they share with the replica worker, because they
//     must not meet a Format, an Expand or a Delete; Unpublish and Stats do not wait for it.
package staging
