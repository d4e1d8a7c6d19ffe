// Package tgttest tests package iscsi on tgtd, a target that forgets its reservations and knows
// neither APTPL nor PREEMPT AND ABORT. It needs no kernel with an initiator: the tests bring one
// that logs in and sends commands (RFC 7143), and the kernel's part is played around it.
package tgttest
