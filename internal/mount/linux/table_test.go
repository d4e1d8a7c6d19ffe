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
