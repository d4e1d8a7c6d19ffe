// Package scsi has the SCSI commands of a shared disk as values: persistent reservations (SPC-4,
// sections 5.13, 6.15 and 6.16), what a unit says of itself (INQUIRY, section 6.6), and how a
// target answers (status and sense data, SAM-5 section 5.3 and SPC-4 section 4.5).
//
// Nothing here is sent. What a target answers is not trusted: each parser accepts any bytes.
//
// The commands are sent as they are, by the kernel's SG_IO, because the kernel's own requests for
// reservations (IOC_PR_REGISTER and its siblings) read nothing, hide the sense data, and always ask
// the target to keep a registration through its loss of power, which a target that cannot do that
// refuses. READ FULL STATUS is not used: targets lack it, and it names a session by an ISID, which
// the kernel does not tell its owner.
package scsi
