package kernel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// devicesNamed answers as the kernel does if there are devices of these names, with the minor numbers from
// 250 on.
func devicesNamed(devices ...string) func(uintptr, []byte) error {
	return func(_ uintptr, b []byte) error {
		ne, at := binary.NativeEndian, unix.SizeofDmIoctl
		for i, name := range devices {
			next := at + (nameAt+len(name)+1+16+7)/8*8 // after the name come the number of events and flags
			if next > len(b) {
				ne.PutUint32(b[28:], unix.DM_BUFFER_FULL_FLAG)
				return nil
			}
			ne.PutUint64(b[at:], unix.Mkdev(253, uint32(250+i))) //nolint:gosec // small
			copy(b[at+nameAt:], name)
			if i < len(devices)-1 {
				ne.PutUint32(b[at+nextAt:], uint32(next-at)) //nolint:gosec // small
			}
			at = next
		}
		if len(devices) == 0 {
			at += nextAt
		}
		ne.PutUint32(b[12:], uint32(at)) //nolint:gosec // small
		return nil
	}
}

func TestTheNamesOfAllMappedDevicesAreRead(t *testing.T) {
	many, want := []string{}, map[string]string{}
	for i := range 3000 {
		many = append(many, fmt.Sprintf("vg0-pvc--%040d", i))
		want[fmt.Sprintf("dm-%d", 250+i)] = many[i]
	}
	for name, tc := range map[string]struct {
		ask  func(uintptr, []byte) error
		want map[string]string
	}{
		"no device mapper": {func(uintptr, []byte) error { return fs.ErrNotExist }, nil},
		"no device":        {devicesNamed(), map[string]string{}},
		"two devices":      {devicesNamed("vg0-root", "vg0-pvc--1"), map[string]string{"dm-250": "vg0-root", "dm-251": "vg0-pvc--1"}},
		"more devices than the first request has room for": {devicesNamed(many...), want},
	} {
		got, err := names(tc.ask)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: (-want +got):\n%s", name, diff)
		}
	}
}

func TestNamesThatTheKernelDoesNotTellAreAnError(t *testing.T) {
	for name, ask := range map[string]func(uintptr, []byte) error{
		"a refusal": func(uintptr, []byte) error { return unix.EACCES },
		"never room enough": func(_ uintptr, b []byte) error {
			binary.NativeEndian.PutUint32(b[28:], unix.DM_BUFFER_FULL_FLAG)
			return nil
		},
		"an end after the answer": func(_ uintptr, b []byte) error {
			binary.NativeEndian.PutUint32(b[12:], uint32(len(b)+1)) //nolint:gosec // small
			return nil
		},
		"a next entry within this one": func(_ uintptr, b []byte) error {
			err := devicesNamed("a", "b")(0, b)
			binary.NativeEndian.PutUint32(b[unix.SizeofDmIoctl+nextAt:], 1)
			return err
		},
		"a next entry after the end": func(_ uintptr, b []byte) error {
			err := devicesNamed("a", "b")(0, b)
			binary.NativeEndian.PutUint32(b[unix.SizeofDmIoctl+nextAt:], 1<<20)
			return err
		},
	} {
		if got, err := names(ask); err == nil {
			t.Errorf("%s: read %v", name, got)
		}
	}
	if _, err := names(func(uintptr, []byte) error { return unix.EACCES }); !errors.Is(err, unix.EACCES) {
		t.Errorf("a refusal: %v", err)
	}
}

func TestAListOfGarbageNeverCrashesTheReader(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		_, _ = names(func(_ uintptr, b []byte) error {
			err := devicesNamed("vg0-root", "vg0-pvc--1")(0, b)
			for range rapid.IntRange(1, 20).Draw(rt, "flips") {
				b[rapid.IntRange(0, 400).Draw(rt, "at")] = rapid.Byte().Draw(rt, "byte")
			}
			return err
		})
	})
}
