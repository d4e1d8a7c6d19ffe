package iscsi

import (
	"context"
	"errors"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/iscsi/scsi"
)

// Kernel is what this package needs of the machine's kernel. Package kernel implements it.
type Kernel interface {
	// Sessions returns the iSCSI sessions of the machine.
	Sessions() ([]Session, error)
	// Disks returns the SCSI disks that are there, those of sessions and all others.
	Disks() ([]Unit, error)
	// Scan asks a session's target for a unit, and returns when the unit has a device, or the
	// target has none of that number. ctx bounds the wait for the device.
	Scan(ctx context.Context, s Session, lun int) error
	// Rescan makes the kernel read a unit's size and names anew.
	Rescan(u Unit) error
	// Remove makes the kernel forget a unit. What has its device open gets errors.
	Remove(u Unit) error
	// Open opens a unit's device for reading. It proves that the device is that unit's.
	// Exclusively: as a mount does, and ErrBusy while something else has it so.
	Open(u Unit, exclusively bool) (Device, error)
}

// ErrBusy is Open's error for a device that is mounted, or that another device is made of.
var ErrBusy = errors.New("the device is claimed")

// Session is a login.
type Session struct {
	// Name is the kernel's: "session3".
	Name      string
	Target    string
	Interface string
	// Connection is another one after each login that the session makes by itself when its path was away. It is
	// empty if the kernel does not say which it is.
	Connection string
	// LoggedIn is false while the connection is away, or comes back.
	LoggedIn bool
	// Host is the number of its SCSI host.
	Host int
	// Units that have been attached in the session and are disks, and the addresses of the others: tapes, changers,
	// controllers. Berth uses none of the others, and another program may.
	Units  []Unit
	Others []string
}

// Unit is a logical unit that is attached.
type Unit struct {
	// Address is "host:channel:target:lun".
	Address string
	Host    int
	LUN     int
	// State is the kernel's word: "running" unless it takes no commands.
	State string
	// WWID is the unit's name as the kernel read it last; empty if it has none.
	WWID string
	// Path of the device node, and the device's number, "8:16". Both are empty until the kernel
	// has made a disk of the unit.
	Path, Number string
	// Holders are the devices that are made of it. Multipath and LVM are one of multipath and one of LVM among them.
	Holders        []string
	Multipath, LVM string
	// Identity of the device, for those that open it.
	Identity provision.Identity
}

// Device is a device that is open. Its calls may hang while the path is away.
type Device interface {
	// Execute sends a command and returns the target's answer, whatever that is.
	Execute(c scsi.Command, limit time.Duration) (scsi.Result, error)
	// Sync writes the kernel's pages and lets the unit write its cache. A write that was refused
	// since the device was opened last is an error, once.
	Sync() error
	// Drop writes the kernel's pages as far as the target takes them, and forgets all of them.
	Drop() error
	Close() error
}
