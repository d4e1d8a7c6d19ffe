package mount_test

import (
	"errors"
	"testing"

	"github.com/moby/sys/mountinfo"

	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/provision"
)

const subvolume = "/dev/sda1[/.berth/volumes/pvc-1/data]"

func TestASubvolumeIsMountedByItsPlaceAndIdentityAndNothingElseIs(t *testing.T) {
	for name, tc := range map[string]struct {
		source   string
		identity provision.Identity
		ok       bool
	}{
		"a subvolume":          {subvolume, "btrfs:a 256 b", true},
		"without its identity": {subvolume, "", false},
		"the whole filesystem": {"/dev/sda1[/]", "btrfs:a 5 b", false},
		"no path":              {"/dev/sda1", "btrfs:a 256 b", false},
		"no disk":              {"/etc/passwd[/.berth/volumes/pvc-1/data]", "btrfs:a 256 b", false},
		"a directory of one":   {"/dev/sda1[/.berth/volumes/pvc-1/data/etc]", "btrfs:a 256 b", false},
		"another option":       {"/dev/sda1[/.berth/volumes/pvc-1,rw/data]", "btrfs:a 256 b", false},
		"a step up":            {"/dev/sda1[/.berth/volumes/../data]", "btrfs:a 256 b", false},
		"the trash":            {"/dev/sda1[/.berth/trash/pvc-1/data]", "btrfs:a 256 b", false},
	} {
		r := mount.Request{Content: provision.Content{Source: tc.source, Identity: tc.identity, Tree: provision.Subvolume}, Target: "/a", Filesystem: provision.Subvolume}
		if err := r.Check(); errors.Is(err, provision.ErrInvalid) == tc.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestALineOfTheMountTableShowsASubvolumeByItsPath(t *testing.T) {
	content := provision.Content{Source: subvolume, Identity: "btrfs:a 256 b", Tree: provision.Subvolume}
	for root, want := range map[string]string{
		"/.berth/volumes/pvc-1/data":           "/",
		"/.berth/volumes/pvc-1/data/sub":       "/sub",
		"/.berth/volumes/pvc-1/data2":          "",
		"/.berth/volumes/pvc-1/data//deleted":  "",
		"/.berth/volumes/pvc-10/data":          "",
		"/.berth/trash/pvc-1/data":             "",
		"/":                                    "",
		"/other/.berth/volumes/pvc-1/data":     "",
		"/.berth/volumes/pvc-1/data/a//delete": "/a//delete",
	} {
		path, ok := mount.Within(content, &mountinfo.Info{FSType: "btrfs", Source: "/dev/sdb", Root: root})
		if ok != (want != "") || ok && path != want {
			t.Errorf("%s is %q, %v; want %q", root, path, ok, want)
		}
	}
	if _, ok := mount.Within(content, &mountinfo.Info{FSType: "ext4", Root: "/.berth/volumes/pvc-1/data"}); ok {
		t.Error("another filesystem is believed")
	}
	source, options := mount.Arguments(content)
	if source != "/dev/sda1" || len(options) != 1 || options[0] != "subvol=/.berth/volumes/pvc-1/data" {
		t.Errorf("mounted as %q with %q", source, options)
	}
}

func TestASubvolumeTakesTheFlagsOfAMountAndNoneOfItsFilesystem(t *testing.T) {
	for option, ok := range map[string]bool{
		"noatime": true, "nosuid": true, "nodev": true, "noexec": true, "relatime": true,
		"sync": false, "dirsync": false, "lazytime": false, "compress=zstd": false, "subvolid=5": false, "nodatacow": false,
	} {
		if err := mount.CheckAsked(provision.Subvolume, []string{option}); errors.Is(err, provision.ErrInvalid) == ok {
			t.Errorf("%s: %v", option, err)
		}
	}
}
