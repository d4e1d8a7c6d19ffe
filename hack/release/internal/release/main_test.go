package release

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"berth.dev/berth/hack/release/internal/inventory"
)

// made is what the tests make releases of: one small program in place of Berth's.
var made struct {
	program []byte
	sources inventory.Sources
	release string // a release that tests only read
}

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "berth-release-*")
	if err == nil {
		err = prepare(dir)
	}
	code := 1
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	} else {
		code = m.Run()
	}
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

func prepare(dir string) (err error) {
	made.release = filepath.Join(dir, "release")
	path := filepath.Join(dir, "program")
	if _, err := run("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", path, "./testdata/program"); err != nil {
		return err
	}
	if made.program, err = os.ReadFile(path); err != nil {
		return err
	}
	out, err := run("go", "env", "GOMODCACHE", "GOROOT")
	if err != nil {
		return err
	}
	lines := strings.Fields(out)
	made.sources = inventory.Sources{ModuleCache: lines[0], Go: lines[1]}
	return nil
}

func run(program string, args ...string) (string, error) {
	cmd := exec.Command(program, args...) //nolint:forbidigo,noctx // the go command alone, before any test
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %q: %w: %s", program, args, err, problems.String())
	}
	return string(out), nil
}

// config returns a release of the chart in this repository.
func config(t *testing.T) Config {
	t.Helper()
	dir := t.TempDir()
	c := Config{
		Version: "1.2.3", Registry: "registry.example.org/team", Downloads: "https://downloads.example.org/",
		Programs: dir, Userland: map[string]string{}, Charts: "../../../../charts", Licence: "../../../../LICENSE", Sources: made.sources,
	}
	write := func(name string, data []byte) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, architecture := range architectures {
		c.Userland[architecture] = write("userland-"+architecture+".tar", userland(t, architecture))
		for _, name := range []string{"berth-linux", "berth-scheduler-1.36-linux", "berth-scheduler-1.37-linux", plugin + "-linux", plugin + "-darwin"} {
			write(name+"-"+architecture, made.program)
		}
		write(plugin+"-windows-"+architecture+".exe", made.program)
	}
	return c
}

// userland returns a root filesystem with one package.
func userland(t *testing.T, architecture string) []byte {
	t.Helper()
	text := "Package: libx\nVersion: 1:2.0-1\nArchitecture: " + architecture + "\nDescription: none\n Version: of a later line\n"
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "var/lib/dpkg/status.d/libx", Mode: 0o644, Size: int64(len(text))}); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// folderOf returns a folder with a release.
func folderOf(t *testing.T, c Config) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "release")
	if err := Write(dir, c); err != nil {
		t.Fatal(err)
	}
	return dir
}

// common returns the folder of a release that the test only reads.
func common(t *testing.T) string {
	t.Helper()
	if _, err := os.Stat(made.release); err == nil {
		return made.release
	}
	if err := Write(made.release, config(t)); err != nil {
		t.Fatal(err)
	}
	return made.release
}

// content returns mode and content of every file below a directory.
func content(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	root := os.DirFS(dir)
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		data, err := fs.ReadFile(root, name)
		files[name] = info.Mode().String() + "\n" + string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
