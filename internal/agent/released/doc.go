// Package released wipes the disks of released LUNs, on the node that a controller has named.
//
// next decides, from the LUN as the API server has it and the disk as this node sees it. Wiper
// carries one step out and asks again, so a death at any step needs no recovery: there is no state in memory.
//
//	1  attach the disk
//	2  register this session under the key of the wipe, which the LUN lists; nothing may have the device open
//	3  take the reservation, from no holder or from one that the LUN lists. From here on the disk refuses every
//	   other writer, however late. If the reservation was not this wipe's, what was wiped before counts no more
//	4  make sure that what is on the disk was the volume's, and record that
//	5  wipe (package provision/wipe), and flush. Before each write the open device is the one that the disk's
//	   provisioner shows now, and the disk holds this session's reservation
//	6  record that the disk is wiped, if the reservation lasted to the end
//	7  give the reservation a key of no epoch, from which the next volume takes it, and record that: a writer of the
//	   last volume that is suspended, and whose node was removed from the record, stays shut out
//	8  detach the disk, and take the node's name off the LUN
//
// Progress is in the LUN's status, and counts only as long as the disk has the key of the wipe: no other writer
// was let in then. A wipe that a controller takes from this node has a new epoch, and begins anew elsewhere.
//
// A node that cannot attach or take the disk records the failure, detaches and takes its name off: another one
// is asked. One that cannot write tries again.
package released
