package group

import (
	"strings"

	"berth.dev/berth/internal/provision"
)

// A device node is no proof of a volume. In a container LVM makes the nodes itself. The machine's
// LVM leaves nodes to udev: when it deactivates such a volume the nodes stay, and lead to the
// next device that gets the number. So Berth uses a volume by its identity alone, and has a node
// made anew that leads elsewhere.

// MappingName is LVM's name of a logical volume for the device mapper.
func MappingName(group, lv string) string {
	double := func(s string) string { return strings.ReplaceAll(s, "-", "--") }
	return double(group) + "-" + double(lv)
}

// mappingUUID is LVM's uuid of a logical volume for the device mapper; empty if LVM did not
// report one.
func mappingUUID(group, lv string) string {
	if group == "" || lv == "" {
		return ""
	}
	return "LVM-" + strings.ReplaceAll(group+lv, "-", "")
}

// those selects logical volumes by the UUIDs that LVM reported, since others may have given a name
// to another volume meanwhile. LVM compares them under the group's lock. A volume whose UUID is
// not known yet is selected by its name.
func (g *Facts) those(lvs []string) string {
	selected := make([]string, len(lvs))
	for i, lv := range lvs {
		selected[i] = `lv_name="` + lv + `"`
		if uuid := lvUUID(g, lv); uuid != "" {
			selected[i] = "lv_uuid=" + uuid
		}
	}
	return strings.Join(selected, " || ")
}

// uuidParts are the lengths of the parts of a UUID, as LVM writes it.
var uuidParts = []int{6, 4, 4, 4, 4, 4, 6}

// lvUUID is LVM's uuid of a logical volume; empty while it is not known.
func lvUUID(g *Facts, lv string) string {
	const digits = 32
	text := g.UUIDs[lv]
	if len(text) < digits {
		return ""
	}
	text = text[len(text)-digits:]
	var parts []string
	for _, length := range uuidParts {
		parts, text = append(parts, text[:length]), text[length:]
	}
	return strings.Join(parts, "-")
}

// content of a logical volume: its device.
func (g *Facts) content(lv string) provision.Content {
	return provision.Content{Source: g.DevicePath(lv), Identity: g.Identity(lv)}
}

// Identity of a logical volume's device; empty while it is not known.
func (g *Facts) Identity(lv string) provision.Identity {
	if g == nil || g.UUIDs[lv] == "" {
		return ""
	}
	return provision.MappedIdentity(MappingName(g.Name, lv), g.UUIDs[lv])
}
