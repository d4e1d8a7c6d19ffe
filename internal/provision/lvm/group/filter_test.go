package group

import (
	"slices"
	"strings"
	"testing"
)

// shown are LVM's settings as lvmconfig shows them.
func shown(global, filter, rest string) []byte {
	return []byte("devices {\n\tdir=\"/dev\"\n\tglobal_filter=" + global + "\n\tscan=[\"/dev\"]\n\tfilter=" + filter + "\n" + rest + "\tscan_lvs=0\n}\n")
}

const (
	acceptAll = `["a|.*|"]`
	noLoops   = `["r|^/dev/loop|","r#^/dev/zd[0-9]#"]`
	oneDisk   = `["a|^/dev/sda$|","r|.*|"]`
	inUse     = "\tuse_devicesfile=1\n\tdevicesfile=\"system.devices\"\n"
	notInUse  = "\tuse_devicesfile=0\n\tdevicesfile=\"system.devices\"\n"
)

func TestTheMachinesOwnFilterIsJudged(t *testing.T) {
	for name, tc := range map[string]struct {
		settings []byte
		reads    string
	}{
		"no filter": {shown(acceptAll, acceptAll, notInUse), "/dev/loop0"},
		"the global filter rejects loop devices and zvols": {shown(noLoops, acceptAll, notInUse), ""},
		"the local filter rejects loop devices and zvols":  {shown(acceptAll, noLoops, notInUse), ""},
		"the global filter accepts only one disk":          {shown(oneDisk, acceptAll, ""), ""},
		"a single pattern outside a list":                  {shown(`"r/loop|zd/"`, acceptAll, ""), ""},
		"the global filter rejects only one loop device":   {shown(`["r|^/dev/loop0$|"]`, acceptAll, notInUse), "/dev/loop7"},
		"the global filter accepts all devices first":      {shown(`["a|.*|","r|^/dev/loop|"]`, acceptAll, notInUse), "/dev/loop0"},
		"the global filter leaves zvols":                   {shown(`["r|loop|"]`, acceptAll, notInUse), "/dev/zd0"},
		"brackets for delimiters":                          {shown(`["r(^/dev/(loop|zd))"]`, acceptAll, ""), ""},
		"a pattern that cannot be understood":              {shown(`["r|[|"]`, acceptAll, ""), "/dev/loop0"},
		"a devices file":                                   {shown(acceptAll, acceptAll, inUse), ""},
	} {
		t.Run(name, func(t *testing.T) {
			host, err := ParseHost(tc.settings)
			if err != nil {
				t.Fatal(err)
			}
			if got := host.Reads([]string{"/dev/loop0"}, []string{"/dev/loop7"}, []string{"/dev/zd0"}); got != tc.reads {
				t.Errorf("it reads %q, want %q", got, tc.reads)
			}
		})
	}
	if _, err := ParseHost(shown(`["a|.*`, acceptAll, "")); err == nil {
		t.Error("settings that are cut short are believed")
	}
}

// LVM reads a device if a pattern accepts one of its names, or none rejects one.
func TestADeviceIsReadByAnyOfItsNames(t *testing.T) {
	disk := []string{"/dev/sdb", "/dev/disk/by-id/wwn-0x6001405", "/dev/disk/by-path/ip-10.0.0.5:3260-iscsi-iqn.x-lun-1"}
	for name, tc := range map[string]struct {
		global, filter string
		reads          bool
	}{
		"no filter":                         {acceptAll, acceptAll, true},
		"other kinds are rejected":          {noLoops, acceptAll, true},
		"all but another disk are rejected": {oneDisk, acceptAll, false},
		"one of its names is accepted":      {`["a|^/dev/disk/by-id/wwn-0x6001405$|","r|.*|"]`, acceptAll, true},
		"one of its names is rejected":      {`["r|/by-path/.*-iscsi-|"]`, acceptAll, false},
		"one is rejected, and one accepted": {`["r|/by-path/.*-iscsi-|","a|^/dev/sd|"]`, acceptAll, true},
		"the other filter rejects a name":   {`["a|^/dev/sdb$|","r|.*|"]`, `["r|/by-path/.*-iscsi-|"]`, false},
	} {
		host, err := ParseHost(shown(tc.global, tc.filter, notInUse))
		if err != nil {
			t.Fatal(err)
		}
		if got := host.Reads(disk); (got != "") != tc.reads || tc.reads && got != "/dev/sdb" {
			t.Errorf("%s: it reads %q", name, got)
		}
	}
}

func TestBerthsFilterTakesNothingFromTheMachines(t *testing.T) {
	for name, tc := range map[string]struct {
		global, filter, want string
	}{
		"no filter":                   {acceptAll, acceptAll, `devices/global_filter=["r|x|"]`},
		"a global filter":             {noLoops, acceptAll, `devices/filter=["r|x|"]`},
		"a local filter":              {acceptAll, noLoops, `devices/global_filter=["r|x|"]`},
		"a global and a local filter": {oneDisk, noLoops, `devices/global_filter=["r|x|","a|^/dev/sda$|","r|.*|"]`},
		"a filter with escapes":       {`["r|a\"b\\.c|"]`, noLoops, `devices/global_filter=["r|x|","r|a\"b\\.c|"]`},
	} {
		host, err := ParseHost(shown(tc.global, tc.filter, ""))
		if err != nil {
			t.Fatal(err)
		}
		if got := host.With([]string{"r|x|"}); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

func TestTheFilterRejectsOnlyDevicesThatPodsWriteTo(t *testing.T) {
	blocks := map[string]Block{
		"sda": {}, "sdb": {}, "sdb1": {Below: []string{"sdb"}, Partition: "pvc-1"}, "loop1": {Backing: "/srv/vg.img"}, "loop10": {Over: "dm-0"},
		"dm-0": {Mapping: "vg0-pvc--1"}, "dm-1": {Mapping: "luks", Below: []string{"loop10"}}, "zd0": {},
		"dm-2": {Mapping: "vg0-snap--1"}, "dm-3": {Mapping: "vg0-cow--snap--1"}, "dm-4": {Mapping: "vg0-cow--pvc--2"},
		"cciss!c0d0p1": {Partition: "pvc-2", Below: []string{"cciss!c0d0"}},
		"sdc":          {Remote: true}, "dm-5": {Mapping: "mpathb", Below: []string{"sdc"}},
	}
	got := Patterns(WrittenByPods(blocks, false), blocks)
	for _, path := range []string{
		"/dev/loop10", "/dev/sdb1", "/dev/dm-1", "/dev/zd0", "/dev/zd0p1", "/dev/nbd0", "/dev/rbd3", "/dev/sdc", "/dev/dm-5", "/dev/cciss/c0d0p1",
		"/dev/mapper/vg0-pvc--1", "/dev/mapper/vg0-snap--1", "/dev/mapper/vg0-cow--snap--1", "/dev/mapper/vg0-cow--pvc--2",
	} {
		if !rejects(got, path) {
			t.Errorf("%s is not rejected by %v", path, got)
		}
	}
	for _, path := range []string{"/dev/sda", "/dev/sdb", "/dev/sdb10", "/dev/loop1", "/dev/loop100", "/dev/mapper/my--pvc--1-root", "/dev/mapper/vg0-snap", "/dev/mapper/mpatha"} {
		if rejects(got, path) {
			t.Errorf("%s is rejected by %v", path, got)
		}
	}
	if slices.ContainsFunc(got, func(p string) bool { return strings.HasPrefix(p, "a") }) {
		t.Errorf("%v accepts something that the machine may not", got)
	}
}
