// Package guesttest tests package iscsi on a real target, the kernel's own (LIO), and on the real
// initiator, in a guest. The guest is target and initiator at once: the nodes of the tests are three
// records of interfaces of open-iscsi, each with an initiator's name of its own, so each has sessions,
// disks and registrations of its own. The content of the target's disk shows what it executed.
package guesttest
