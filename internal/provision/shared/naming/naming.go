package naming

import (
	"strings"

	"berth.dev/berth/internal/provision/iscsi"
	"berth.dev/berth/internal/provision/shared"
)

// units are, by the beginning of handles, what such a handle leads to, where several handles lead to one disk. A handle
// of another beginning is the only one of its disk.
var units = map[string]func(handle string) string{iscsi.Scheme: iscsi.UnitOf}

// unit is the normal form of a handle.
func unit(handle string) string {
	for scheme, of := range units {
		if strings.HasPrefix(handle, scheme) {
			return scheme + of(handle)
		}
	}
	return handle
}

// Same says whether two names may be of one disk. An array gives each disk one identity, and a handle leads to one
// disk. A disk has a world-wide name and a serial number, so handles of one unit are of one disk whatever they say of
// its identity.
func Same(a, b shared.Disk) bool {
	return a.Handle == b.Handle || strings.EqualFold(string(a.Identity), string(b.Identity)) || unit(a.Handle) == unit(b.Handle)
}
