package kernel

import (
	"os"
	"path/filepath"
	"strings"
)

// identity is what a disk says of itself, the most certain first:
//
//   - its world-wide name, which NVMe namespaces have themselves and SCSI and SATA
//     disks at their device;
//   - the serial number that whoever runs the machine gave a virtio disk;
//   - the card identification of flash;
//   - model and serial number.
func (a attributes) identity() string {
	for _, name := range []string{"wwid", "device/wwid"} {
		if wwid := a.text(name); wwid != "" {
			return wwid
		}
	}
	if serial := a.text("serial"); serial != "" {
		return "virtio-" + serial
	}
	if cid := a.text("device/cid"); cid != "" {
		return "mmc-" + cid
	}
	serial := a.text("device/serial")
	if serial == "" {
		serial = a.unitSerial()
	}
	if model := a.text("device/model"); model != "" && serial != "" {
		return strings.Join([]string{a.text("device/vendor"), model, serial}, "_")
	}
	return ""
}

// unitSerial is the serial number in page 80h of a SCSI disk's vital product data: two
// bytes, the length in two more, and the text.
func (a attributes) unitSerial() string {
	page, err := os.ReadFile(filepath.Join(string(a), "device/vpd_pg80"))
	if err != nil || len(page) < 4 || page[1] != 0x80 {
		return ""
	}
	return strings.Trim(string(page[4:min(len(page), 4+int(page[2])<<8+int(page[3]))]), " \x00")
}
