// Package btrfstest makes filesystems of btrfs for tests, on loop devices of this machine.
package btrfstest
