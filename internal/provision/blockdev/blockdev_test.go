package blockdev

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

func TestAnyRangeIsReadInWholeBlocks(t *testing.T) {
	content := make([]byte, 5*block)
	for i := range content {
		content[i] = byte(i % 251)
	}
	path := filepath.Join(t.TempDir(), "disk")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rapid.Check(t, func(t *rapid.T) {
		from := rapid.IntRange(0, len(content)).Draw(t, "from")
		to := rapid.IntRange(from, len(content)).Draw(t, "to")
		b := make([]byte, to-from)
		if n, err := Aligned(f.Fd()).ReadAt(b, int64(from)); err != nil || n != len(b) || !slices.Equal(b, content[from:to]) {
			t.Fatalf("read %d bytes from %d to %d: %v", n, from, to, err)
		}
	})
	if _, err := Aligned(f.Fd()).ReadAt(make([]byte, 2), int64(len(content)-1)); err == nil {
		t.Error("read past the end")
	}
}

func TestBuffersBeginAtABlock(t *testing.T) {
	for _, size := range []int{0, 1, 512, block, 3*block + 1} {
		b := Buffer(size)
		if len(b) != size || cap(b) != size || uintptr(unsafe.Pointer(unsafe.SliceData(b)))%block != 0 {
			t.Errorf("a buffer of %d bytes has %d, and room for %d", size, len(b), cap(b))
		}
	}
}

func TestAFileIsNoBlockDevice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(" text\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, isFile := Number(path)
	_, isGone := Number(path + "-gone")
	if isFile == nil || isGone == nil || Same(path, path+"-gone") || !Same(path, path) {
		t.Error("a file is taken for a block device")
	}
	if line, err := ReadLine(path); err != nil || line != "text" {
		t.Errorf("read %q: %v", line, err)
	}
}

// event is one as the kernel writes it.
func event(wd int32, mask uint32, name string) []byte {
	b := make([]byte, unix.SizeofInotifyEvent+(len(name)+16)/16*16)
	binary.NativeEndian.PutUint32(b, uint32(wd)) //nolint:gosec // as the kernel does
	binary.NativeEndian.PutUint32(b[4:], mask)
	binary.NativeEndian.PutUint32(b[12:], uint32(len(b)-unix.SizeofInotifyEvent)) //nolint:gosec // small
	copy(b[unix.SizeofInotifyEvent:], name)
	return b
}

func TestEventsAreTold(t *testing.T) {
	for name, tc := range map[string]struct {
		events []byte
		want   []string
	}{
		"a writer closed a disk":      {event(2, unix.IN_CLOSE_WRITE, ""), []string{"/dev/sda"}},
		"a disk that is not watched":  {event(9, unix.IN_CLOSE_WRITE, ""), nil},
		"a node went":                 {event(1, unix.IN_DELETE, "sdq"), []string{"/dev/sdq"}},
		"a node came that is no disk": {event(1, unix.IN_CREATE, "no-such-device"), nil},
		"events were lost":            {event(-1, unix.IN_Q_OVERFLOW, ""), []string{"/dev/sda", "/dev/sdb"}},
		"two at once":                 {slices.Concat(event(3, unix.IN_CLOSE_WRITE, ""), event(1, unix.IN_DELETE, "sdb")), []string{"/dev/sdb", "/dev/sdb"}},
		"a watch that ended":          {slices.Concat(event(2, unix.IN_IGNORED, ""), event(2, unix.IN_CLOSE_WRITE, "")), nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			w := watch{fd: -1, dir: 1, paths: map[int32]string{2: "/dev/sda", 3: "/dev/sdb"}, written: func(device string) { got = append(got, device) }}
			err := w.handle(tc.events)
			slices.Sort(got)
			if err != nil || !slices.Equal(got, tc.want) {
				t.Errorf("told of %v, %v, want %v", got, err, tc.want)
			}
		})
	}
	if err := (&watch{}).handle(event(1, unix.IN_DELETE, "sdq")[:20]); err == nil {
		t.Error("an event that is cut short is taken for whole")
	}
}
