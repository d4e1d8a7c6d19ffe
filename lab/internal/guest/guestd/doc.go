// Command guestd is the whole system software of a guest, in place of an
// initramfs made of shell and of systemd. It is three processes' program:
//
//	/init           in the initramfs: loads the disk drivers, mounts the root
//	                disk and continues there as
//	guestd init     process 1: starts the next one and reaps orphans
//	guestd serve    carries out the plan from the seed disk and serves exec
//
// Orphans are reaped in a process of their own because reaping takes any
// child: in one process it would steal exit codes from exec.
package main
