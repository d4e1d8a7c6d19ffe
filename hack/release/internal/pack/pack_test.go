package pack_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/hack/release/internal/pack"
)

func TestTheOrderOfFilesDoesNotMatter(t *testing.T) {
	a, b := pack.File{Name: "x/a", Mode: 0o755, Data: []byte("1")}, pack.File{Name: "b", Mode: 0o644, Data: []byte("2")}
	one, err := pack.TarGzip([]pack.File{a, b})
	if err != nil {
		t.Fatal(err)
	}
	two, err := pack.TarGzip([]pack.File{b, a})
	if err != nil || !bytes.Equal(one, two) {
		t.Errorf("the archives differ, %v", err)
	}
}

func TestADirectoryComesOnceAndBeforeItsFiles(t *testing.T) {
	data, err := pack.TarGzip(pack.Below("top", []pack.File{{Name: "d/b", Mode: 0o644}, {Name: "d/a", Mode: 0o755, Data: []byte("a")}}))
	if err != nil {
		t.Fatal(err)
	}
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for archive := tar.NewReader(r); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.ModTime.Unix() != 0 || h.Uid != 0 {
			t.Errorf("%s has a time or an owner: %v, %d", h.Name, h.ModTime, h.Uid)
		}
		names = append(names, h.Name)
	}
	if diff := cmp.Diff([]string{"top/", "top/d/", "top/d/a", "top/d/b"}, names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

func TestANameThatLeavesTheArchiveOrComesTwiceIsRefused(t *testing.T) {
	for _, names := range [][]string{{"/a"}, {"../a"}, {"a/../b"}, {""}, {"a", "a"}} {
		var files []pack.File
		for _, n := range names {
			files = append(files, pack.File{Name: n})
		}
		if _, err := pack.Tar(files); err == nil {
			t.Errorf("%q were packed", names)
		}
	}
}
