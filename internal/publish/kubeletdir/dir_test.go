package kubeletdir

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"berth.dev/berth/internal/provision"
)

func TestPathsMustLieBelowTheKubeletsDirectory(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "kubelet")
	for _, made := range []string{"kubelet/pods/a", "elsewhere"} {
		if err := os.MkdirAll(filepath.Join(base, made), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(base, "elsewhere"), filepath.Join(dir, "pods/way-out")); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		path string
		ok   bool
	}{
		"a path below the directory":                        {dir + "/pods/a/mount", true},
		"a path below the directory with missing parents":   {dir + "/plugins/x/y/globalmount", true},
		"the directory itself":                              {dir, false},
		"a directory with a longer name":                    {dir + "-2/pods", false},
		"a path outside the directory":                      {"/etc/cron.d/x", false},
		"a path that leaves the directory by dots":          {dir + "/pods/../../elsewhere/x", false},
		"a path with two slashes":                           {dir + "/pods//a", false},
		"a trailing slash":                                  {dir + "/pods/a/", false},
		"a relative path":                                   {"pods/a", false},
		"an empty path":                                     {"", false},
		"a path that leaves the directory by a link":        {dir + "/pods/way-out/x", false},
		"a missing path behind a link out of the directory": {dir + "/pods/way-out/x/y/z", false},
	}
	d := New(dir)
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			err := d.Check(tc.path)
			if (err == nil) != tc.ok || err != nil && !errors.Is(err, provision.ErrInvalid) {
				t.Errorf("error %v; allowed: %v", err, tc.ok)
			}
		})
	}
}

func TestADirectoryBehindALinkIsNamedAsTheMountTableDoes(t *testing.T) {
	base := t.TempDir()
	target, link := filepath.Join(base, "data"), filepath.Join(base, "kubelet")
	if err := os.MkdirAll(filepath.Join(target, "pods"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	d := New(link)
	if err := d.Check(link + "/pods/a"); err != nil {
		t.Error(err)
	}
	if got := d.Resolve(link + "/pods/a"); got != target+"/pods/a" {
		t.Errorf("resolved to %s", got)
	}
}
