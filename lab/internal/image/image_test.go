package image_test

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/lab/internal/image"
)

func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// rootfs returns the path of a root filesystem tar with one file.
func rootfs(t *testing.T, file, content string) string {
	t.Helper()
	var b bytes.Buffer
	tw := tar.NewWriter(&b)
	if err := tw.WriteHeader(&tar.Header{Name: file, Mode: 0o644, Size: int64(len(content))}); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(tw, content); err != nil {
		t.Fatal(err)
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	return write(t, "rootfs.tar", b.String())
}

// entries returns name and content of everything in a tar.
func entries(t *testing.T, data []byte) map[string]string {
	t.Helper()
	all := map[string]string{}
	tr := tar.NewReader(bytes.NewReader(data))
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		all[h.Name] = string(content) + h.Linkname
	}
}

func build(t *testing.T, s image.Spec) (path string, files map[string]string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "image.tar")
	if err := image.Write(path, s); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, entries(t, data)
}

func decode(t *testing.T, files map[string]string, digest string) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(files["blobs/sha256/"+strings.TrimPrefix(digest, "sha256:")]), &v); err != nil {
		t.Fatalf("blob %s: %v", digest, err)
	}
	return v
}

func TestAnImageHasItsLayersInOrderAndItsConfiguration(t *testing.T) {
	path, files := build(t, image.Spec{
		Ref:        "localhost/berth:dev",
		Layers:     []string{rootfs(t, "etc/base", "base")},
		Files:      []image.File{{Path: "/usr/bin/berth", Source: write(t, "berth", "program")}},
		Links:      []image.Link{{Path: "/berth", Target: "usr/bin/berth"}},
		Entrypoint: []string{"/berth"}, Cmd: []string{"agent"}, User: "65532:65532",
	})
	ids, err := image.Identify(path)
	if err != nil || len(ids) != 1 || ids[0].Ref != "localhost/berth:dev" {
		t.Fatalf("Identify = %v, %v", ids, err)
	}
	m := decode(t, files, ids[0].Digest)
	layers := m["layers"].([]any)
	if len(layers) != 2 {
		t.Fatalf("image has %d layers, want the base and the top", len(layers))
	}
	content := func(i int) map[string]string {
		digest := layers[i].(map[string]any)["digest"].(string)
		return entries(t, []byte(files["blobs/sha256/"+strings.TrimPrefix(digest, "sha256:")]))
	}
	if diff := cmp.Diff(map[string]string{"etc/base": "base"}, content(0)); diff != "" {
		t.Errorf("base layer (-want +got):\n%s", diff)
	}
	top := map[string]string{"berth": "usr/bin/berth", "usr/": "", "usr/bin/": "", "usr/bin/berth": "program"}
	if diff := cmp.Diff(top, content(1)); diff != "" {
		t.Errorf("top layer (-want +got):\n%s", diff)
	}
	c := decode(t, files, m["config"].(map[string]any)["digest"].(string))["config"].(map[string]any)
	if c["User"] != "65532:65532" || !cmp.Equal(c["Entrypoint"], []any{"/berth"}) || !cmp.Equal(c["Cmd"], []any{"agent"}) {
		t.Errorf("configuration is %v", c)
	}
}

func TestTheSameInputGivesTheSameBytes(t *testing.T) {
	spec := func(mtime time.Time) image.Spec {
		program := write(t, "program", "x")
		if err := os.Chtimes(program, mtime, mtime); err != nil {
			t.Fatal(err)
		}
		return image.Spec{Ref: "localhost/x:1", Files: []image.File{{Path: "/b/x", Source: program}, {Path: "/a/x", Source: program}}}
	}
	_, first := build(t, spec(time.Unix(1, 0)))
	_, second := build(t, spec(time.Unix(1e9, 0)))
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("archives differ:\n%s", diff)
	}
}

func TestAnInvalidImageSpecIsRefused(t *testing.T) {
	good := func() image.Spec {
		return image.Spec{Ref: "localhost/x:1", Links: []image.Link{{Path: "/a", Target: "b"}}}
	}
	cases := map[string]struct {
		change func(*image.Spec)
		want   string
	}{
		"a name without registry":        {func(s *image.Spec) { s.Ref = "x:1" }, "not complete"},
		"a name without tag":             {func(s *image.Spec) { s.Ref = "localhost/x" }, "not complete"},
		"the tag a kubelet always pulls": {func(s *image.Spec) { s.Ref = "localhost/x:latest" }, "latest"},
		"a user by name":                 {func(s *image.Spec) { s.User = "nobody" }, "number"},
		"nothing in it":                  {func(s *image.Spec) { s.Links = nil }, "at least"},
		"a relative path":                {func(s *image.Spec) { s.Links[0].Path = "a" }, "absolute"},
		"a path out of the image":        {func(s *image.Spec) { s.Links[0].Path = "/../a" }, "absolute"},
		"a path twice":                   {func(s *image.Spec) { s.Files = []image.File{{Path: "/a", Source: "x"}} }, "twice"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := good()
			c.change(&s)
			if err := s.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Validate = %v, want an error with %q", err, c.want)
			}
		})
	}
	if err := good().Validate(); err != nil {
		t.Errorf("the good one: %v", err)
	}
}

func TestAMissingSourceLeavesNoArchive(t *testing.T) {
	path := filepath.Join(t.TempDir(), "image.tar")
	err := image.Write(path, image.Spec{Ref: "localhost/x:1", Files: []image.File{{Path: "/x", Source: "/no/such/file"}}})
	if err == nil {
		t.Fatal("no error")
	}
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestIdentifyRefusesOtherTars(t *testing.T) {
	if _, err := image.Identify(rootfs(t, "file", "x")); err == nil || !strings.Contains(err.Error(), "not an OCI image archive") {
		t.Errorf("Identify = %v", err)
	}
}
