package guest

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"berth.dev/berth/lab/internal/artefact"
)

// entry is a file as the kernel would unpack it.
type entry struct {
	name, data string
	mode       int64
}

// unpack reads a newc archive by the format's description.
func unpack(t *testing.T, archive []byte) []entry {
	t.Helper()
	align := func(n int) int { return (n + 3) &^ 3 }
	var entries []entry
	for at := 0; ; {
		head := string(archive[at : at+110])
		if head[:6] != "070701" {
			t.Fatalf("no header at %d: %q", at, head[:6])
		}
		field := func(i int) int {
			n, err := strconv.ParseInt(head[6+8*i:14+8*i], 16, 64)
			if err != nil {
				t.Fatal(err)
			}
			return int(n)
		}
		nameEnd := at + 110 + field(11)
		name := strings.TrimSuffix(string(archive[at+110:nameEnd]), "\x00")
		if name == "TRAILER!!!" {
			return entries
		}
		start := align(nameEnd)
		entries = append(entries, entry{name, string(archive[start : start+field(6)]), int64(field(1))})
		at = align(start + field(6))
	}
}

func TestInitramfsHasTheProgramAndModulesInLoadOrder(t *testing.T) {
	modules := fstest.MapFS{
		"01-virtio.ko": {Data: []byte("two")}, "00-virtio_ring.ko": {Data: []byte("one1")}, "README": {Data: []byte("no")},
	}
	var archive bytes.Buffer
	if err := writeInitramfs(&archive, []byte("guestd"), modules); err != nil {
		t.Fatal(err)
	}
	got := unpack(t, archive.Bytes())
	for _, want := range []entry{
		{"newroot", "", cpioDirectory}, {"dev/console", "", cpioDevice}, {"init", "guestd", cpioProgram},
		{"modules/00-virtio_ring.ko", "one1", cpioFile}, {"modules/01-virtio.ko", "two", cpioFile},
	} {
		if !slices.Contains(got, want) {
			t.Errorf("%+v is missing in %+v", want, got)
		}
	}
	if slices.ContainsFunc(got, func(e entry) bool { return strings.Contains(e.name, "README") }) {
		t.Error("a file that is no module is in the archive")
	}
}

const moduleDependencies = `kernel/virtio/virtio.ko: kernel/virtio/virtio_ring.ko
kernel/virtio/virtio_ring.ko:
kernel/virtio/virtio_pci.ko: kernel/virtio/virtio.ko kernel/virtio/virtio_ring.ko
kernel/block/virtio_blk.ko: kernel/virtio/virtio_ring.ko kernel/virtio/virtio.ko
kernel/char/virtio-rng.ko.xz: kernel/virtio/virtio.ko
`

func TestEachModuleIsLoadedOnceAndAfterItsDependencies(t *testing.T) {
	deps, err := parseDependencies(strings.NewReader(moduleDependencies))
	if err != nil {
		t.Fatal(err)
	}
	got, err := deps.order([]string{"virtio_blk", "virtio_pci", "virtio_rng", "ext4"}, map[string]bool{"ext4": true})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"kernel/virtio/virtio_ring.ko", "kernel/virtio/virtio.ko", "kernel/block/virtio_blk.ko",
		"kernel/virtio/virtio_pci.ko", "kernel/char/virtio-rng.ko.xz",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestModuleTheKernelHasNotIsAnError(t *testing.T) {
	deps, err := parseDependencies(strings.NewReader(moduleDependencies))
	if err != nil {
		t.Fatal(err)
	}
	if files, err := deps.order([]string{"floppy"}, nil); err == nil || !strings.Contains(err.Error(), "floppy") {
		t.Errorf("got %v, %v", files, err)
	}
}

func TestInitramfsIsMadeAnewOnlyForAnotherRootFilesystem(t *testing.T) {
	address := func(base artefact.Recipe) string {
		r, err := initramfsRecipe("/somewhere", base)
		if err != nil {
			t.Fatal(err)
		}
		return r.Address()
	}
	if first, second := address(rootRecipe()), address(rootRecipe()); first != second {
		t.Error("the address of the same initramfs changes")
	}
	other := rootRecipe()
	other.Key = append(other.Key, "one more package")
	if address(rootRecipe()) == address(other) {
		t.Error("the modules of another kernel give the same initramfs")
	}
}

func TestGuestdSourceIsWholeAndWithoutTests(t *testing.T) {
	files, err := guestdFiles()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		names = append(names, f.name)
		if strings.HasSuffix(f.name, "_test.go") {
			t.Errorf("%s is part of guestd", f.name)
		}
	}
	for _, want := range []string{"guestd/main.go", "wire/frame.go"} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is missing in %v", want, names)
		}
	}
}

// The embedded source must be complete: the lab compiles it on machines without the
// project.
func TestGuestdIsBuiltFromTheEmbeddedSource(t *testing.T) {
	sources, err := guestdFiles()
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	if program, err := buildGuestd(t.Context(), t.TempDir(), sources, &log); err != nil || len(program) == 0 {
		t.Errorf("building guestd: %v\n%s", err, log.String())
	}
}
