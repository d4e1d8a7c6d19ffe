package mount_test

import (
	"errors"
	"strings"
	"testing"

	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/provision"
)

func TestADatasetIsMountedByItsNameAndNothingElseIs(t *testing.T) {
	for name, tc := range map[string]struct {
		source, tree, filesystem string
		ok                       bool
	}{
		"a dataset":                {"tank/berth/pvc-1", provision.Dataset, provision.Dataset, true},
		"a zpool":                  {"tank", provision.Dataset, provision.Dataset, false},
		"a path":                   {"/dev/zvol/tank/pvc-1", provision.Dataset, provision.Dataset, false},
		"a device":                 {"/dev/zvol/tank/pvc-1", "", provision.Dataset, false},
		"a snapshot":               {"tank/pvc-1@snap", provision.Dataset, provision.Dataset, false},
		"an option":                {"tank/-o", provision.Dataset, provision.Dataset, false},
		"a step up":                {"tank/../pvc-1", provision.Dataset, provision.Dataset, false},
		"a blank":                  {"tank/pvc 1", provision.Dataset, provision.Dataset, false},
		"an empty name":            {"", provision.Dataset, provision.Dataset, false},
		"too long":                 {"tank/" + strings.Repeat("a", 255), provision.Dataset, provision.Dataset, false},
		"ext4 on a dataset":        {"tank/pvc-1", provision.Dataset, provision.Ext4, false},
		"a tree of ext4":           {"tank/pvc-1", provision.Ext4, provision.Ext4, false},
		"ext4 on a dataset's name": {"tank/pvc-1", "", provision.Ext4, false},
		"ext4 on a zvol's device":  {"/dev/zvol/tank/pvc-1", "", provision.Ext4, true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, err := range []error{
				mount.Request{Content: provision.Content{Source: tc.source, Identity: "zvol:a", Tree: tc.tree}, Target: "/a", Filesystem: tc.filesystem}.Check(),
				mount.GrowRequest{Content: provision.Content{Source: tc.source, Identity: "zvol:a", Tree: tc.tree}, Target: "/a", Filesystem: tc.filesystem}.Check(),
			} {
				if errors.Is(err, provision.ErrInvalid) == tc.ok {
					t.Errorf("got %v", err)
				}
			}
		})
	}
	dataset := provision.Content{Source: "tank/pvc-1", Tree: provision.Dataset}
	if err := (mount.BindRequest{Content: dataset, Source: "/a", Target: "/b"}).Check(); err != nil {
		t.Errorf("binding a mounted dataset: %v", err)
	}
	if err := (mount.BindRequest{Content: dataset, Target: "/b"}).Check(); !errors.Is(err, provision.ErrInvalid) {
		t.Errorf("a dataset as a block device: %v", err)
	}
	dataset.Tree = "a filesystem of a later Berth"
	if err := (mount.BindRequest{Content: dataset, Source: "/a", Target: "/b"}).Check(); !errors.Is(err, provision.ErrInvalid) {
		t.Errorf("binding a tree of an unknown filesystem: %v", err)
	}
}

func TestADatasetTakesTheFlagsThatItHeeds(t *testing.T) {
	for option, ok := range map[string]bool{
		"noatime": true, "relatime": true, "nosuid": true, "nodev": true, "noexec": true, "sync": true, `context="u:r:t:s0:c1,c2"`: true,
		"lazytime": false, "dirsync": false, "discard": false, "zfsutil": false, "xattr": false, "mntpoint=/etc": false, "suid": false,
	} {
		err := mount.CheckAsked(provision.Dataset, []string{option})
		if errors.Is(err, provision.ErrInvalid) == ok {
			t.Errorf("%s: %v", option, err)
		}
		if err != nil && (!strings.Contains(err.Error(), "supported for zfs") || strings.Contains(err.Error(), "lazytime,")) {
			t.Errorf("%s: what is supported reads %v", option, err)
		}
	}
}
