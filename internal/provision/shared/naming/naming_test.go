package naming

import (
	"testing"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/shared"
)

func TestOneDiskIsKnownByWhateverNames(t *testing.T) {
	const array, naa = "iqn.2026-01.com.example:array", "naa.6001405beab000100000000000000000"
	for name, tc := range map[string]struct {
		a, b       string // handles
		isA, isB   string // identities
		oneAndSame bool
	}{
		"the same words":                     {"iscsi://10.0.0.5/" + array + "/1", "iscsi://10.0.0.5/" + array + "/1", naa, naa, true},
		"the port by default":                {"iscsi://10.0.0.5:3260/" + array + "/1", "iscsi://10.0.0.5/" + array + "/1", naa, "serial.beab0001", true},
		"other portals of the target":        {"iscsi://10.0.0.5,10.0.0.6/" + array + "/1", "iscsi://[2001:db8::5]:860/" + array + "/1", naa, "eui.0123456789abcdef", true},
		"one identity at another target":     {"iscsi://10.0.0.5/" + array + "/1", "iscsi://10.0.0.5/iqn.2026-01.com.example:other/7", naa, "NAA.6001405BEAB000100000000000000000", true},
		"another unit":                       {"iscsi://10.0.0.5/" + array + "/1", "iscsi://10.0.0.5/" + array + "/11", naa, "naa.6001405beab000110000000000000000", false},
		"another target":                     {"iscsi://10.0.0.5/" + array + "/1", "iscsi://10.0.0.5/iqn.2026-01.com.example:other/1", naa, "naa.6001405beab000110000000000000000", false},
		"names without portals":              {"sim:///a/1", "sim:///b/1", "one", "two", false},
		"the name of another scheme":         {"iscsi://10.0.0.5/" + array + "/1", "sim:///" + array + "/1", naa, "two", false},
		"a handle of a scheme in other case": {"sim:///a", "sim:///A", "one", "two", false},
		"handles that no provisioner reads":  {"iscsi://a", "iscsi://b", "one", "two", false},
	} {
		a, b := shared.Disk{Handle: tc.a, Identity: provision.Identity(tc.isA)}, shared.Disk{Handle: tc.b, Identity: provision.Identity(tc.isB)}
		if Same(a, b) != tc.oneAndSame || Same(b, a) != tc.oneAndSame {
			t.Errorf("%s: %v, want %v", name, !tc.oneAndSame, tc.oneAndSame)
		}
	}
}
