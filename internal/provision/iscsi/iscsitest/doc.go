// Package iscsitest plays an iSCSI target, and the kernels and the open-iscsi of nodes that log in
// there, in memory: it runs the commands of iscsiadm that package iscsi uses, and executes SCSI
// commands byte by byte, by the standard and not by package scsi.
package iscsitest
