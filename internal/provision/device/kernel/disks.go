package kernel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/blockdev"
	"berth.dev/berth/internal/provision/device"
	"berth.dev/berth/internal/provision/device/gpt"
)

// Disks are the whole disks of this machine. The zero value is ready to use.
type Disks struct {
	// root is put before /sys and /dev in tests.
	root string
}

var _ device.Disks = Disks{}

const (
	blockDir = "/sys/block"
	devDir   = "/dev"
	sector   = blockdev.Sector
)

// linkDirs are the directories in which udev keeps names that lead to a disk.
var linkDirs = []string{"disk/by-id", "disk/by-path"}

// noDisks are prefixes of the names of block devices that are no place for data, even if the
// kernel lists them with a device of their own: optical and floppy drives, network block
// devices, zvols. describe also leaves out the boot and protected areas of flash cards.
var noDisks = []string{"sr", "fd", "nbd", "loop", "ram", "zram", "dm-", "md", "zd"}

// List implements device.Disks.
func (k Disks) List() ([]device.Disk, error) {
	entries, err := os.ReadDir(k.root + blockDir)
	if err != nil {
		return nil, fmt.Errorf("listing block devices: %w", err)
	}
	links := k.links()
	var disks []device.Disk
	for _, e := range entries {
		if d, ok := k.describe(e.Name()); ok {
			d.Links = links[d.Name]
			disks = append(disks, d)
		}
	}
	return disks, nil
}

// Find implements device.Disks. It does not look for links.
func (k Disks) Find(name string) (device.Disk, bool) { return k.describe(name) }

// Leads implements device.Disks.
func (Disks) Leads(path string, is provision.Identity) error { return blockdev.Leads(path, is) }

// Keep implements device.Disks.
func (k Disks) Keep(path string) (io.Closer, error) {
	f, err := k.open(filepath.Base(path), unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Watch implements device.Disks.
func (Disks) Watch(ctx context.Context, ready func(), written func(device string)) error {
	return blockdev.Watch(ctx, ready, written)
}

// describe reads the description of a disk from sysfs. It returns false for a disk that
// cannot be handed out, and for one without a node in /dev: nothing of this machine can open it.
func (k Disks) describe(name string) (device.Disk, bool) {
	a := attributes(filepath.Join(k.root, blockDir, name))
	if strings.ContainsRune(name, '/') || name == "" || !a.has("device") || a.has("partition") ||
		slices.ContainsFunc(noDisks, func(p string) bool { return strings.HasPrefix(name, p) }) ||
		strings.HasPrefix(name, "mmcblk") && (strings.Contains(name, "boot") || strings.Contains(name, "rpmb")) {
		return device.Disk{}, false
	}
	d := device.Disk{
		Name: name, Sequence: blockdev.DiskSequence(string(a)), Identity: blockdev.DiskIdentity(string(a)),
		Geometry:   gpt.Geometry{Size: a.number("size") * sector, Block: a.number("queue/logical_block_size")},
		Rotational: a.text("queue/rotational") == "1",
		Holders:    a.names("holders"), Partitions: a.partitions(name),
	}
	for _, p := range d.Partitions {
		d.Holders = append(d.Holders, attributes(filepath.Join(string(a), p.Name)).names("holders")...)
	}
	if !k.local(name, a) {
		return device.Disk{}, false
	}
	usable := d.Size > 0 && (d.Block == 512 || d.Block == 4096) && a.text("ro") == "0" && a.text("removable") == "0" && a.text("hidden") != "1"
	return d, usable
}

// local says whether a disk has a node in /dev and is not reached over a network.
func (k Disks) local(name string, a attributes) bool {
	_, err := os.Stat(k.root + filepath.Join(devDir, name))
	return !errors.Is(err, fs.ErrNotExist) && !blockdev.Remote(string(a))
}

// links returns the names in /dev/disk by the disk they lead to.
func (k Disks) links() map[string][]string {
	links := map[string][]string{}
	for _, dir := range linkDirs {
		dir = filepath.Join(devDir, dir)
		entries, err := os.ReadDir(k.root + dir)
		if err != nil {
			continue // a machine without udev has none
		}
		for _, e := range entries {
			link := filepath.Join(dir, e.Name())
			if target, err := os.Readlink(k.root + link); err == nil {
				name := filepath.Base(target)
				links[name] = append(links[name], link)
			}
		}
	}
	return links
}

// attributes is a directory of sysfs.
type attributes string

// text returns the content of a one-line file; empty if there is none.
func (a attributes) text(name string) string {
	text, err := blockdev.ReadLine(filepath.Join(string(a), name))
	if err != nil {
		return ""
	}
	return text
}

// number returns the number in a file; 0 if there is none.
func (a attributes) number(name string) int64 {
	n, err := strconv.ParseInt(a.text(name), 10, 54)
	if err != nil {
		return 0
	}
	return n
}

func (a attributes) has(name string) bool {
	_, err := os.Lstat(filepath.Join(string(a), name))
	return err == nil
}

func (a attributes) names(dir string) (names []string) {
	entries, err := os.ReadDir(filepath.Join(string(a), dir))
	if err != nil {
		return nil
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func (a attributes) partitions(disk string) (partitions []device.Partition) {
	for _, name := range a.names(".") {
		part := attributes(filepath.Join(string(a), name))
		if !strings.HasPrefix(name, disk) || !part.has("partition") {
			continue
		}
		partitions = append(partitions, device.Partition{
			Name: name, Number: int(part.number("partition")), Start: part.number("start") * sector, Length: part.number("size") * sector,
		})
	}
	return partitions
}
