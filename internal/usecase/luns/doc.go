// Package luns makes volumes of shared disks out of the LUNs that an administrator has declared.
//
// # One volume for a LUN
//
// A volume takes a LUN in three writes, each of which counts only if the object is as it was read:
//
//	1  the Volume is created, without a disk: now it has a UID
//	2  the LUN's status names the Volume by name and UID
//	3  the Volume's spec names the disk, which never changes afterwards
//
// A LUN names one Volume at a time, and never goes from one to the next, so no two Volumes get to 3 with the
// same LUN. Two calls for one Volume may each have taken a LUN: one of them writes 3, and the other LUN is
// given back, since the Volume can never have it. If a process is killed between two writes, the next call or
// the reconciler goes on from the objects. Between 2 and 3 the API server is asked whether a Volume that was made by hand names the
// disk.
//
// The calls of one process choose LUNs one after another: chosen at once it would be the same LUN for all, and each
// choice lists everything. Where no LUN will do by the cache, nothing is listed: such calls come again and again.
//
// # The end of a volume
//
// The LUN of a Volume that is gone is Released: the disk may have the Volume's data, and no other volume gets
// it. Where it is proved that no node has the disk any more, a node wipes it, and it is free again:
//
//	1  the Volume is being deleted, and each node has detached the disk: the LUN is Released, with the order
//	   to wipe it. The Volume's finalizer waits for this write
//	2  the Volume is gone, and nothing else names the disk: a node is named, with an epoch and a key
//	3  its agent wipes the disk (package released), detaches it, and takes the node's name off
//	4  the LUN is Available
//
// The LUN of a Volume that is deleted before a node could have the disk goes the same way, without 3: a claim may be
// deleted between any two of the writes above. A call that has taken a LUN for a Volume which is gone gives it back.
//
// A LUN without the order waits for an administrator, who wipes the disk, deletes the LUN and declares it
// anew. That a disk is blank is not believed for that: a node mounts no filesystem on it that was made for
// another volume.
package luns
