package linux

import (
	"errors"
	"strings"
	"testing"

	"github.com/moby/sys/mountinfo"

	"berth.dev/berth/internal/provision"
)

func TestAnotherSELinuxContextThanAskedIsAConflictThatNamesBoth(t *testing.T) {
	const shown, other = "u:r:t:s0:c1,c2", "u:r:t:s0:c3,c4"
	for name, tc := range map[string]struct {
		options string
		want    want
		ok      bool
	}{
		"the mount has the wanted context":                    {`rw,context="` + shown + `"`, want{context: shown}, true},
		"the mount has a different context":                   {`rw,context="` + shown + `"`, want{context: other}, false},
		"the mount lacks the wanted context":                  {`rw,seclabel`, want{context: shown}, false},
		"the mount has a context that no caller wants":        {`rw,context="` + shown + `"`, want{}, true},
		"the device node of a block volume lacks the context": {`rw,seclabel`, want{context: shown, node: true}, true},
	} {
		t.Run(name, func(t *testing.T) {
			err := labelled(&mountinfo.Info{Source: "/dev/a", Mountpoint: "/stage", VFSOptions: tc.options}, tc.want)
			switch {
			case tc.ok && err != nil:
				t.Error(err)
			case !tc.ok && (!errors.Is(err, provision.ErrConflict) || !strings.Contains(err.Error(), tc.want.context) || !strings.Contains(err.Error(), "/stage")):
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAReadOnlyBindOfAWritableFilesystemIsNoReadOnlyFilesystem(t *testing.T) {
	for name, tc := range map[string]struct {
		mount, filesystem  string
		readOnly, ofItself bool
	}{
		"a writable mount":                         {"rw,relatime", "rw,errors=remount-ro", false, false},
		"a read-only bind of a writable mount":     {"ro,relatime", "rw,errors=remount-ro", true, false},
		"a read-only filesystem":                   {"ro,relatime", "ro,errors=remount-ro", true, true},
		"a filesystem that the kernel gave up on":  {"rw,relatime", "ro,errors=remount-ro", true, true},
		"a filesystem with an option that says ro": {"rw,relatime", "rw,norecovery,errors=ro", false, false},
	} {
		e := &mountinfo.Info{Options: tc.mount, VFSOptions: tc.filesystem}
		if readOnly(e) != tc.readOnly || readOnlyFilesystem(e) != tc.ofItself {
			t.Errorf("%s: the mount is read-only: %v, the filesystem: %v", name, readOnly(e), readOnlyFilesystem(e))
		}
	}
}
