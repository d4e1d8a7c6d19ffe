package lvmtest

import (
	"fmt"
	"io/fs"
	"strings"
	"sync/atomic"

	"berth.dev/berth/internal/provision"
)

// A device node leads to the device that bears its number. LVM makes the node of a logical volume
// when it makes or activates the volume, and again when it is told to. The machine's own LVM
// leaves the node behind when it deactivates the volume.

// Mislead makes the node of a logical volume lead to the device of another one, or to none if to
// is empty.
func (h *Host) Mislead(path, to string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.nodes == nil {
		h.nodes = map[string]string{}
	}
	h.nodes[path] = to
}

// Deactivate deactivates a logical volume as the machine's own LVM does, which leaves nodes to
// udev.
func (h *Host) Deactivate(path string) {
	h.Mislead(path, "")
	h.On(path, func(v *Volume) { v.Active = false })
}

// behind returns the path of the logical volume to whose device a node leads. The caller holds mu.
func (h *Host) behind(path string) string {
	if to, wrong := h.nodes[path]; wrong {
		return to
	}
	return path
}

// opened returns the volume to whose device a node leads, with the volume's own path and identity.
// The caller holds mu.
func (h *Host) opened(path string) (v *Volume, own string, is provision.Identity, err error) {
	own = h.behind(path)
	g, v := h.device(own)
	if v == nil || !v.Active {
		return nil, "", "", fmt.Errorf("opening %s: no such device", path)
	}
	name := own[strings.LastIndex(own, "/")+1:]
	return v, own, provision.MappedIdentity(g.mapping(name), g.mappingUUID(name)), nil
}

// proved is opened with a check of the identity: another device is ErrUnavailable. The caller
// holds mu.
func (h *Host) proved(path string, is provision.Identity) (v *Volume, own string, err error) {
	v, own, got, err := h.opened(path)
	if err == nil && (got != is || is == "") {
		err = fmt.Errorf("%w: %s is another device: %s, not %s", provision.ErrUnavailable, path, got, is)
	}
	return v, own, err
}

// Leads implements lvm.Devices.
func (h *Host) Leads(path string, is provision.Identity) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, _, err := h.proved(path, is)
	return err
}

// Exists says whether a node leads to any device.
func (h *Host) Exists(path string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, _, _, err := h.opened(path)
	return err == nil
}

// UUID implements lvm.Devices.
func (h *Host) UUID(mapping string) (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, g := range h.groups {
		for name, v := range g.Volumes {
			if v.Active && g.mapping(name) == mapping {
				return g.mappingUUID(name), nil
			}
		}
	}
	return "", fs.ErrNotExist
}

// remake makes the nodes of logical volumes anew.
func (h *Host) remake(operands []string, fail failure) ([]byte, error) {
	for _, operand := range operands {
		if _, v := h.device("/dev/" + operand); v == nil {
			return fail("Failed to find logical volume %q", operand)
		}
		delete(h.nodes, "/dev/"+operand)
	}
	return nil, nil
}

func (g *Group) mapping(name string) string { return doubled(g.Name) + "-" + doubled(name) }

// uuids counts the logical volumes that have a UUID.
var uuids atomic.Int64

// lvUUID is LVM's uuid of a logical volume, and mappingUUID that of its device. A volume that is
// made anew under a name has another one.
func (g *Group) lvUUID(name string) string {
	v := g.Volumes[name]
	if v == nil {
		return ""
	}
	if v.uuid == "" {
		v.uuid = fmt.Sprintf("%06d-0000-0000-0000-0000-0000-played", uuids.Add(1))
	}
	return v.uuid
}

func (g *Group) mappingUUID(name string) string {
	return "LVM-" + strings.ReplaceAll(g.uuid()+g.lvUUID(name), "-", "")
}
