package blockdev

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
)

// DiskSequence tells apart the disks that bear one name in turn, by a disk's directory in
// sysfs. Kernels before 5.15 number no disks, and then it is the device number.
func DiskSequence(dir string) string {
	return cmp.Or(attribute(dir, "diskseq"), attribute(dir, "dev"))
}

// DiskIdentity is what a disk says of itself, the most certain first:
//
//   - its world-wide name, which NVMe namespaces have themselves and SCSI and SATA
//     disks at their device;
//   - the serial number that the hypervisor gave a virtio disk;
//   - the card identification of flash;
//   - model and serial number.
//
// It is empty if the disk says nothing.
func DiskIdentity(dir string) string {
	for _, name := range []string{"wwid", "device/wwid"} {
		if wwid := attribute(dir, name); wwid != "" {
			return wwid
		}
	}
	if serial := attribute(dir, "serial"); serial != "" {
		return "virtio-" + serial
	}
	if cid := attribute(dir, "device/cid"); cid != "" {
		return "mmc-" + cid
	}
	serial := cmp.Or(attribute(dir, "device/serial"), unitSerial(dir))
	if model := attribute(dir, "device/model"); model != "" && serial != "" {
		return strings.Join([]string{attribute(dir, "device/vendor"), model, serial}, "_")
	}
	return ""
}

// unitSerial is the serial number in page 80h of a SCSI disk's vital product data: two
// bytes, the length in two more, and the text.
func unitSerial(dir string) string {
	page, err := os.ReadFile(filepath.Join(dir, "device/vpd_pg80"))
	if err != nil || len(page) < 4 || page[1] != 0x80 {
		return ""
	}
	return strings.Trim(string(page[4:min(len(page), 4+int(page[2])<<8+int(page[3]))]), " \x00")
}

// Remote says whether a disk is reached over a network, by its directory in sysfs. Other nodes may reach such a disk as
// well, and it was attached for a purpose of its own.
func Remote(dir string) bool {
	if _, err := os.Lstat(filepath.Join(dir, "device")); err != nil {
		return false // no disk, but a device of the kernel's own
	}
	path, err := filepath.EvalSymlinks(dir)
	if err != nil || strings.Contains(path, "/session") || strings.Contains(path, "/rport-") {
		return true // iSCSI and Fibre Channel; a path that cannot be resolved went just now
	}
	transports, err := filepath.Glob(filepath.Join(dir, "device/nvme*/transport"))
	for _, t := range append(transports, filepath.Join(dir, "device/transport")) {
		if text, readErr := ReadLine(t); readErr == nil && text != "pcie" {
			return true
		}
	}
	return err != nil
}

// attribute is a one-line file of sysfs, empty if there is none.
func attribute(dir, name string) string {
	text, err := ReadLine(filepath.Join(dir, name))
	if err != nil {
		return ""
	}
	return text
}
