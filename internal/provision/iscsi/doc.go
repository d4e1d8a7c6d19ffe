// Package iscsi is the provisioner of shared disks that are logical units of iSCSI targets. The
// units are given: an administrator names each by a Handle, and nothing here makes or deletes one.
//
// The node logs in by iscsiadm, and sees what it has in sysfs alone: neither lists that commands
// print nor links that udev makes prove anything. The session is told to attach no unit by itself.
// So a login that succeeds late, after its caller gave up or died, attaches nothing, and a unit
// appears only when it is asked for by its number.
//
// Which unit it is the unit says itself: each call asks the device that it has open for its name
// (INQUIRY) before anything else, because the kernel's own copy of the name is as old as its last
// look. Reservations are made and read by SCSI commands of this package (package scsi).
//
// The target alone knows which registration is this session's: after a new login, initiator and key
// are the same and the session is another. So Look asks it, by a registration of a key under that
// very key, which changes nothing and which the target refuses to any other session. Glance, by which disks in use
// are watched, asks that only if something has changed since the last answer (see proof).
//
// A disk that is reached in two ways is refused, whether the kernel joins them (device-mapper
// multipath) or not: a reservation of one way does not stop the other.
package iscsi
