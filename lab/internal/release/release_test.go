package release_test

import (
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"berth.dev/berth/lab/internal/artefact"
	"berth.dev/berth/lab/internal/release"
)

// newRelease returns a directory as the Kubernetes project publishes it.
func newRelease(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range release.Required {
		put(t, dir, name, "program "+name)
		sum := sha256.Sum256([]byte("program " + name))
		put(t, dir, name+".sha256", hex.EncodeToString(sum[:]))
	}
	return dir
}

func put(t *testing.T, dir, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, location string) (string, error) {
	t.Helper()
	return release.Get(t.Context(), &artefact.Store{Dir: t.TempDir()}, location)
}

func wantPrograms(t *testing.T, dir string, names []string) {
	t.Helper()
	for _, name := range names {
		path := filepath.Join(dir, name)
		data, err := os.ReadFile(path)
		if err != nil || string(data) != "program "+name {
			t.Errorf("%s holds %q, %v", name, data, err)
		}
		if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o111 == 0 {
			t.Errorf("%s cannot be executed", name)
		}
	}
}

func TestAReleaseComesFromADirectory(t *testing.T) {
	dir, err := get(t, newRelease(t))
	if err != nil {
		t.Fatal(err)
	}
	wantPrograms(t, dir, release.Required)
}

func TestAReleaseComesFromAServerOnce(t *testing.T) {
	var downloads atomic.Int32
	files := http.FileServer(http.Dir(newRelease(t)))
	server := httptest.NewServer(http.StripPrefix("/v1/bin", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "kubelet") {
			downloads.Add(1)
		}
		files.ServeHTTP(w, r)
	})))
	defer server.Close()
	store := &artefact.Store{Dir: t.TempDir()}
	for range 2 {
		dir, err := release.Get(t.Context(), store, server.URL+"/v1/bin")
		if err != nil {
			t.Fatal(err)
		}
		wantPrograms(t, dir, release.Required)
	}
	if downloads.Load() != 1 {
		t.Errorf("kubelet was downloaded %d times, want once", downloads.Load())
	}
}

func TestEtcdIsTakenIfItIsThere(t *testing.T) {
	origin := newRelease(t)
	put(t, origin, release.Etcd, "program etcd")
	sum := sha512.Sum512([]byte("program etcd"))
	put(t, origin, release.Etcd+".sha512", hex.EncodeToString(sum[:])+"  etcd\n")
	dir, err := get(t, origin)
	if err != nil {
		t.Fatal(err)
	}
	wantPrograms(t, dir, []string{release.Etcd})
}

func TestABinaryThatWasChangedIsRefused(t *testing.T) {
	origin := newRelease(t)
	put(t, origin, "kubelet", "something else")
	server := httptest.NewServer(http.FileServer(http.Dir(origin)))
	defer server.Close()
	for name, location := range map[string]string{"directory": origin, "server": server.URL} {
		_, err := get(t, location)
		wrong, ok := errors.AsType[*release.ChecksumError](err)
		if !ok || !strings.HasSuffix(wrong.File, "kubelet") {
			t.Errorf("%s: error is %v, want a ChecksumError for the kubelet", name, err)
		}
	}
}

func TestAReleaseWithABadChecksumOrAMissingBinaryIsRefused(t *testing.T) {
	cases := map[string]struct {
		damage func(t *testing.T, dir string)
		is     error
		text   string
	}{
		"a binary without checksum": {
			damage: func(t *testing.T, dir string) { remove(t, dir, "kubelet.sha256") }, is: release.ErrNoChecksum, text: "kubelet",
		},
		"a missing binary": {
			damage: func(t *testing.T, dir string) { remove(t, dir, "kubelet"); remove(t, dir, "kubelet.sha256") },
			is:     fs.ErrNotExist, text: "kubelet",
		},
		"a page instead of a checksum": {
			damage: func(t *testing.T, dir string) { put(t, dir, "kubelet.sha256", "<html>") }, text: "no sha256 checksum",
		},
		"an empty checksum": {
			damage: func(t *testing.T, dir string) { put(t, dir, "kubelet.sha256", "\n") }, text: "empty",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			origin := newRelease(t)
			c.damage(t, origin)
			_, err := get(t, origin)
			if err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("error is %v, want %v with %q", err, c.is, c.text)
			}
		})
	}
}

func remove(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

func TestAServerThatFailsIsAnError(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadGateway)
	}))
	defer server.Close()
	if _, err := get(t, server.URL); err == nil || !strings.Contains(err.Error(), "502") {
		t.Errorf("error is %v, want the status 502", err)
	}
	if _, err := get(t, filepath.Join(t.TempDir(), "nothing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing directory gives %v", err)
	}
}
