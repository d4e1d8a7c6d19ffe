package node

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"berth.dev/berth/lab/internal/image"
)

// memory is a guest whose containerd is a table.
type memory struct {
	table    string
	imported []byte
	synced   bool
	fail     error
}

func (m *memory) Output(_ context.Context, argv ...string) ([]byte, error) {
	if argv[0] == "sync" {
		m.synced = len(m.imported) > 0
		return nil, m.fail
	}
	return []byte("REF TYPE DIGEST SIZE PLATFORMS LABELS\n" + m.table), m.fail
}

func (m *memory) Pipe(_ context.Context, stdin io.Reader, _ ...string) (err error) {
	m.imported, err = io.ReadAll(stdin)
	return errors.Join(err, m.fail)
}

func archive(t *testing.T) (path string, id image.Identity) {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	if err := os.WriteFile(program, []byte("x"), 0o755); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(dir, "image.tar")
	if err := image.Write(path, image.Spec{Ref: "localhost/x:1", Files: []image.File{{Source: program, Path: "/x"}}}); err != nil {
		t.Fatal(err)
	}
	ids, err := image.Identify(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, ids[0]
}

func TestAnImageIsMissingUnlessTheSameContentIsThere(t *testing.T) {
	path, id := archive(t)
	row := func(ref, digest string) string {
		return ref + " application/vnd.oci.image.manifest.v1+json " + digest + " 1.4 MiB linux/amd64 -\n"
	}
	for name, tc := range map[string]struct {
		table string
		want  bool
	}{
		"nothing is there":                  {"", true},
		"the same is there":                 {row("localhost/y:1", "sha256:00") + row(id.Ref, id.Digest), false},
		"another content has the name":      {row(id.Ref, "sha256:00"), true},
		"another name has the same content": {row("localhost/y:1", id.Digest), true},
	} {
		t.Run(name, func(t *testing.T) {
			missing, err := Missing(t.Context(), &memory{table: tc.table}, []string{path})
			if err != nil || slices.Contains(missing, path) != tc.want {
				t.Fatalf("missing are %v, %v; want it among them: %v", missing, err, tc.want)
			}
		})
	}
}

func TestALoadedImageIsOnTheDisk(t *testing.T) {
	path, _ := archive(t)
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	g := &memory{}
	if err := Load(t.Context(), g, path); err != nil {
		t.Fatal(err)
	}
	if string(g.imported) != string(want) {
		t.Errorf("%d bytes imported, want %d", len(g.imported), len(want))
	}
	if !g.synced {
		t.Error("the image was not written to the disk")
	}
}

func TestLoadReturnsTheCauseOfItsFailure(t *testing.T) {
	path, _ := archive(t)
	broken := errors.New("containerd is down")
	if err := Load(t.Context(), &memory{fail: broken}, path); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if _, err := Missing(t.Context(), &memory{fail: broken}, []string{path}); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if err := Load(t.Context(), &memory{}, "/no/such/archive"); err == nil || !strings.Contains(err.Error(), "/no/such/archive") {
		t.Errorf("got %v", err)
	}
}
