package lvmtest

import "berth.dev/berth/internal/provision/lvm/group"

// A command that dies in the middle leaves devices suspended, and tables loaded that are
// not in use. If it died before LVM recorded its change, these tables differ from LVM's metadata.

// InUse returns how many extents of a logical volume the kernel maps.
func (v *Volume) InUse() int64 {
	if v.Maps > 0 {
		return v.Maps
	}
	return v.Extents
}

// refresh resumes a logical volume. LVM loads the table that it has recorded if another one is in
// use. It then puts any loaded table into use.
func (v *Volume) refresh() {
	if !v.Suspended {
		return
	}
	if v.InUse() != v.Extents {
		v.Loaded = v.Extents
	}
	if v.Loaded > 0 {
		v.Maps, v.Loaded = v.Loaded, 0
	}
	v.Suspended = false
}

// devicesOf are the names of the devices that a logical volume is made of.
func (g *Group) devicesOf(name string) (names []string) {
	v, mapping := g.Volumes[name], g.mapping(name)
	if v.Active {
		names = append(names, mapping)
	}
	if v.Thin == nil {
		return names
	}
	live, layered := g.live(name)
	if live {
		names = append(names, mapping+"_tdata", mapping+"_tmeta")
	}
	if layered {
		names = append(names, mapping+"-tpool")
	}
	return names
}

// Mapped implements lvm.Devices.
func (h *Host) Mapped() (map[string]group.Mapping, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	devices := map[string]group.Mapping{}
	for _, g := range h.groups {
		for name, v := range g.Volumes {
			for _, device := range g.devicesOf(name) {
				devices[device] = group.Mapping{Suspended: v.Suspended}
			}
			if v.Thin == nil {
				continue
			}
			for part, readOnly := range v.Thin.Parts {
				devices[g.mapping(name)+part] = group.Mapping{ReadOnly: readOnly}
			}
		}
	}
	return devices, nil
}

// Unload implements lvm.Devices.
func (h *Host) Unload(device string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, g := range h.groups {
		for name, v := range g.Volumes {
			for _, own := range g.devicesOf(name) {
				if own == device {
					v.Loaded = 0
				}
			}
		}
	}
	return nil
}
