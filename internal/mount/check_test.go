package mount_test

import (
	"errors"
	"strings"
	"testing"

	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/provision"
)

func TestMountOptionsAreAllowedByNameOnly(t *testing.T) {
	for name, tc := range map[string]struct {
		fs, option string
		ok         bool
	}{
		"a flag for ext4":                              {"ext4", "noatime", true},
		"a flag for xfs":                               {"xfs", "nodev", true},
		"an option of ext4":                            {"ext4", "commit=30", true},
		"an option of xfs":                             {"xfs", "logbsize=256k", true},
		"an option of xfs on ext4":                     {"ext4", "inode64", false},
		"two options joined by a comma":                {"ext4", "noatime,suid", false},
		"an option after a line break":                 {"ext4", "noatime\nsuid", false},
		"an option gives devices to a pod":             {"ext4", "dev", false},
		"an option gives set-uid to a pod":             {"xfs", "suid", false},
		"an option skips the journal":                  {"ext4", "noload", false},
		"an option skips log recovery":                 {"xfs", "norecovery", false},
		"an option turns barriers off":                 {"ext4", "barrier=0", false},
		"a bind mount":                                 {"ext4", "bind", false},
		"a remount":                                    {"ext4", "remount", false},
		"a log on another device":                      {"xfs", "logdev=/dev/vda", false},
		"a journal on another device":                  {"ext4", "journal_path=/dev/vda", false},
		"an option that the request has as a field":    {"ext4", "ro", false},
		"Berth's own option for copies of xfs":         {"xfs", "nouuid", true},
		"Berth's own option for copies of xfs on ext4": {"ext4", "nouuid", false},
		"an SELinux context":                           {"ext4", `context="u:r:t:s0:c1,c2"`, true},
		"an option goes on after an error":             {"ext4", "errors=continue", false},
		"an option shows old blocks":                   {"ext4", "data=writeback", false},
		"an empty option":                              {"ext4", "", false},
		"an unknown filesystem":                        {"vfat", "noatime", false},
	} {
		t.Run(name, func(t *testing.T) {
			err := mount.CheckOptions(tc.fs, []string{tc.option})
			if errors.Is(err, provision.ErrInvalid) == tc.ok {
				t.Errorf("%s with %q: %v", tc.fs, tc.option, err)
			}
		})
	}
}

func TestPathsAreAbsoluteAndClean(t *testing.T) {
	for path, ok := range map[string]bool{
		"/var/lib/kubelet/x": true, "/dev/vg/lv": true,
		"": false, "/": false, "relative": false, "/a/../b": false, "/a/": false, "//a": false, "-o": false,
		"/" + strings.Repeat("a", 5000): false,
	} {
		for _, err := range []error{
			mount.CheckPath(path),
			mount.Request{Content: provision.Content{Source: "/dev/a", Identity: "dm:a"}, Target: path, Filesystem: "ext4"}.Check(),
			mount.Request{Content: provision.Content{Source: path, Identity: "dm:a"}, Target: "/a", Filesystem: "ext4"}.Check(),
			mount.BindRequest{Content: provision.Content{Source: "/dev/a", Identity: "dm:a"}, Target: path}.Check(),
			mount.GrowRequest{Content: provision.Content{Source: path, Identity: "dm:a"}, Target: "/a", Filesystem: "xfs"}.Check(),
		} {
			if errors.Is(err, provision.ErrInvalid) == ok {
				t.Errorf("%.20q: %v", path, err)
			}
		}
	}
	if err := (mount.BindRequest{Content: provision.Content{Source: "/dev/a", Identity: "dm:a"}, Source: "a", Target: "/b"}).Check(); !errors.Is(err, provision.ErrInvalid) {
		t.Errorf("a relative source: %v", err)
	}
	for _, err := range []error{
		mount.Request{Content: provision.Content{Source: "/dev/a"}, Target: "/b", Filesystem: "ext4"}.Check(),
		mount.BindRequest{Content: provision.Content{Source: "/dev/a"}, Target: "/b"}.Check(),
		mount.GrowRequest{Content: provision.Content{Source: "/dev/a"}, Target: "/b", Filesystem: "ext4"}.Check(),
	} {
		if !errors.Is(err, provision.ErrInvalid) {
			t.Errorf("a device of no identity: %v", err)
		}
	}
}

func TestARefusalSaysWhyAndWhatIsSupported(t *testing.T) {
	for option, want := range map[string]string{
		"inode65":               "(supported: ro, context=LABEL, allocsize=SIZE, dirsync, discard, gquota, inode32, inode64",
		"nouuid":                "Berth sets it for copies",
		"norecovery":            "before its log is replayed",
		"logdev=/dev/sda":       "a volume is one device",
		"context=a,b":           "it is no SELinux context",
		"journal_checksum":      `"journal_checksum" is not supported for xfs (`,
		"":                      `"" is not supported for xfs (`,
		strings.Repeat("x", 99): `"` + strings.Repeat("x", 64) + `" is not supported for xfs (`,
	} {
		err := mount.CheckAsked("xfs", []string{option})
		if !errors.Is(err, provision.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", option, err, want)
		}
	}
}
