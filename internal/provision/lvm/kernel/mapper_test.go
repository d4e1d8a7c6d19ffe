package kernel

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// answer returns the kernel's answer to a request about a device with these targets.
func answer(kinds []string, status string) []byte {
	b := mapperRequest("vg-pool-tpool", targetSpace)
	ne := binary.NativeEndian
	end := unix.SizeofDmIoctl
	for _, kind := range kinds {
		copy(b[end+targetTypeAt:], kind)
		end += unix.SizeofDmTargetSpec
		end += copy(b[end:], status+"\x00")
	}
	ne.PutUint32(b[12:], uint32(end))        //nolint:gosec // small
	ne.PutUint32(b[20:], uint32(len(kinds))) //nolint:gosec // small
	return b
}

const thinStatus = "2 118/1024 1024/1024 - rw discard_passdown queue_if_no_space - 256"

func TestTheTargetOfADeviceIsRead(t *testing.T) {
	kind, status, err := parseTarget(answer([]string{"thin-pool"}, thinStatus))
	if kind != "thin-pool" || status != thinStatus || err != nil {
		t.Errorf("read %q, %q, %v", kind, status, err)
	}
}

func TestAnswersThatDoNotFitAreErrors(t *testing.T) {
	short, full := answer([]string{"linear"}, ""), answer([]string{"linear"}, "")
	binary.NativeEndian.PutUint32(short[12:], unix.SizeofDmIoctl)
	binary.NativeEndian.PutUint32(full[28:], unix.DM_BUFFER_FULL_FLAG)
	long := answer([]string{"linear"}, "")
	binary.NativeEndian.PutUint32(long[12:], targetSpace+1)
	for name, tc := range map[string]struct {
		answer []byte
		want   error
	}{
		"no table":                          {answer(nil, ""), errShortAnswer},
		"no target":                         {short, errShortAnswer},
		"an answer longer than the buffer":  {long, errShortAnswer},
		"an answer that the kernel cut off": {full, errShortAnswer},
		"two targets":                       {answer([]string{"linear", "linear"}, "x"), errNotOneTarget},
	} {
		if kind, status, err := parseTarget(tc.answer); !errors.Is(err, tc.want) {
			t.Errorf("%s: read %q, %q, %v, want %v", name, kind, status, err, tc.want)
		}
	}
}

func TestAnAnswerOfGarbageNeverCrashesTheReader(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := answer([]string{"thin-pool"}, thinStatus)
		for range rapid.IntRange(1, 20).Draw(rt, "flips") {
			b[rapid.IntRange(0, 400).Draw(rt, "at")] = rapid.Byte().Draw(rt, "byte")
		}
		_, _, _ = parseTarget(b)
	})
}

func TestNamesThatNoDeviceCanHaveAreRefused(t *testing.T) {
	for _, name := range []string{"", strings.Repeat("a", unix.DM_NAME_LEN)} {
		if _, _, err := (Devices{}).Target(name); !errors.Is(err, unix.EINVAL) {
			t.Errorf("%q: %v", name, err)
		}
	}
}
