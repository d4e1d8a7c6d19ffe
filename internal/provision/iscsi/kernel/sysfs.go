package kernel

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/provision/blockdev"
	"berth.dev/berth/internal/provision/iscsi"
)

// Kernel is this machine's. The zero value is ready to use.
type Kernel struct {
	// root is where sysfs and the device nodes are looked for, for tests.
	root string
}

var _ iscsi.Kernel = Kernel{}

func (k Kernel) class(name ...string) string {
	return filepath.Join(append([]string{k.root + "/sys/class"}, name...)...)
}

// Sessions implements iscsi.Kernel.
func (k Kernel) Sessions() ([]iscsi.Session, error) {
	names, err := list(k.class("iscsi_session"))
	if err != nil || len(names) == 0 {
		return nil, err
	}
	units, err := k.units()
	if err != nil {
		return nil, err
	}
	var all []iscsi.Session
	for _, name := range names {
		s, err := k.session(name)
		if vanished(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		for _, u := range units {
			switch {
			case u.Host != s.Host:
			case u.disk:
				s.Units = append(s.Units, u.Unit)
			default:
				s.Others = append(s.Others, u.Address)
			}
		}
		all = append(all, s)
	}
	return all, nil
}

func (k Kernel) session(name string) (iscsi.Session, error) {
	dir := k.class("iscsi_session", name)
	s := iscsi.Session{Name: name}
	var err error
	if s.Target, err = blockdev.ReadLine(filepath.Join(dir, "targetname")); err != nil {
		return s, err
	}
	if s.Interface, err = blockdev.ReadLine(filepath.Join(dir, "ifacename")); err != nil {
		return s, err
	}
	state, err := blockdev.ReadLine(filepath.Join(dir, "state"))
	if err != nil {
		return s, err
	}
	s.LoggedIn = state == "LOGGED_IN"
	// A session has one connection. Its own port is another one at each login, as far as the kernel knows it.
	connection := "connection" + strings.TrimPrefix(name, "session") + ":0"
	s.Connection, _ = blockdev.ReadLine(k.class("iscsi_connection", connection, "local_port"))
	device, err := filepath.EvalSymlinks(filepath.Join(dir, "device"))
	if err != nil {
		return s, err
	}
	// A software initiator has a SCSI host for each session, and the session is below it.
	host := filepath.Base(filepath.Dir(device))
	s.Host, err = strconv.Atoi(strings.TrimPrefix(host, "host"))
	return s, err
}

// typeDisk is the kernel's word for a unit that is a disk.
const typeDisk = "0"

// unit is a unit of any kind. Of one that is no disk, only address and host are known.
type unit struct {
	iscsi.Unit
	disk bool
}

// Disks implements iscsi.Kernel.
func (k Kernel) Disks() (disks []iscsi.Unit, err error) {
	units, err := k.units()
	for _, u := range units {
		if u.disk {
			disks = append(disks, u.Unit)
		}
	}
	return disks, err
}

func (k Kernel) units() ([]unit, error) {
	names, err := list(k.class("scsi_device"))
	if err != nil {
		return nil, err
	}
	var all []unit
	for _, address := range names {
		u, err := k.unit(address)
		if vanished(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading SCSI device %s: %w", address, err)
		}
		all = append(all, u)
	}
	return all, nil
}

func (k Kernel) unit(address string) (u unit, err error) {
	dir := k.class("scsi_device", address, "device")
	kind, err := blockdev.ReadLine(filepath.Join(dir, "type"))
	if err != nil {
		return u, err
	}
	u.Address, u.disk = address, kind == typeDisk
	if _, err := fmt.Sscanf(address, "%d:", &u.Host); err != nil || !u.disk {
		return u, err
	}
	var host, channel, target int
	if _, err := fmt.Sscanf(address, "%d:%d:%d:%d", &host, &channel, &target, &u.LUN); err != nil {
		return u, err
	}
	if u.State, err = blockdev.ReadLine(filepath.Join(dir, "state")); err != nil {
		return u, err
	}
	u.WWID, _ = blockdev.ReadLine(filepath.Join(dir, "wwid")) // a unit without a name has none to read
	names, err := list(filepath.Join(dir, "block"))
	if err != nil || len(names) != 1 {
		return u, err
	}
	block := k.class("block", names[0])
	if u.Number, err = blockdev.ReadLine(filepath.Join(block, "dev")); err != nil {
		return u, err
	}
	u.Path, u.Identity = "/dev/"+names[0], blockdev.Whole(block)
	return u, holders(block, &u.Unit)
}

// holders notes the devices that are made of a disk, or of one of its partitions.
func holders(block string, u *iscsi.Unit) error {
	names, err := list(block)
	if err != nil {
		return err
	}
	of := []string{block}
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(block, name, "partition")); err == nil {
			of = append(of, filepath.Join(block, name))
		}
	}
	for _, dir := range of {
		held, err := list(filepath.Join(dir, "holders"))
		if err != nil {
			return err
		}
		for _, h := range held {
			u.Holders = append(u.Holders, h)
			switch uuid, _ := blockdev.ReadLine(filepath.Join(dir, "holders", h, "dm/uuid")); { // device-mapper alone has one
			case strings.HasPrefix(uuid, "mpath-"):
				u.Multipath = h
			case strings.HasPrefix(uuid, "LVM-"):
				u.LVM = h
			}
		}
	}
	return nil
}

// pause is between two looks for a unit's device, which the kernel makes a moment after the unit.
const pause = 20 * time.Millisecond

// Scan implements iscsi.Kernel.
func (k Kernel) Scan(ctx context.Context, s iscsi.Session, lun int) error {
	scan := k.class("scsi_host", fmt.Sprintf("host%d", s.Host), "scan")
	if err := order(scan, fmt.Sprintf("- - %d", lun)); err != nil {
		return err
	}
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		disks, err := k.Disks()
		if err != nil {
			return err
		}
		waits := false
		for _, d := range disks {
			waits = waits || d.Host == s.Host && d.LUN == lun && d.Path == ""
		}
		if !waits {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the kernel makes no disk of unit %d: %w", lun, context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// Rescan implements iscsi.Kernel.
func (k Kernel) Rescan(u iscsi.Unit) error {
	return order(k.class("scsi_device", u.Address, "device/rescan"), "1")
}

// Remove implements iscsi.Kernel.
func (k Kernel) Remove(u iscsi.Unit) error {
	err := order(k.class("scsi_device", u.Address, "device/delete"), "1")
	if vanished(err) {
		return nil
	}
	return err
}

// order writes to a file of sysfs.
func order(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(text)
	return err
}

// list returns the names in a directory, none if there is no such directory.
func list(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

// vanished says that a session or a device went while it was looked at.
func vanished(err error) bool {
	return errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENODEV)
}
