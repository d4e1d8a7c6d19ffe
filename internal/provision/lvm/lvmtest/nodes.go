package lvmtest

import (
	"fmt"
	"io/fs"
	"strings"

	"berth.dev/berth/internal/provision"
)

// A device node leads to whatever bears its number. LVM makes that of a logical volume when it
// makes or activates it, and anew when it is told to; whoever deactivates it elsewhere leaves
// the node behind.

// Mislead makes the node of a logical volume lead to the device of another one's, or to none if
// that is empty.
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

// behind is the path of the logical volume to whose device a node leads; mu is held.
func (h *Host) behind(path string) string {
	if to, wrong := h.nodes[path]; wrong {
		return to
	}
	return path
}

// opened is what a node leads to, with its own path; mu is held.
func (h *Host) opened(path string) (v *Volume, own string, is provision.Identity, err error) {
	own = h.behind(path)
	g, v := h.device(own)
	if v == nil || !v.Active {
		return nil, "", "", fmt.Errorf("opening %s: no such device", path)
	}
	name := own[strings.LastIndex(own, "/")+1:]
	return v, own, provision.MappedIdentity(g.mapping(name), g.mappingUUID(name)), nil
}

// proved is what a node leads to if that is what it should; mu is held.
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

// lvUUID is LVM's uuid of a logical volume, and mappingUUID that of its device.
func (g *Group) lvUUID(name string) string { return "uuid-of-" + name }

func (g *Group) mappingUUID(name string) string {
	return "LVM-" + strings.ReplaceAll(g.uuid()+g.lvUUID(name), "-", "")
}
