package kubeletdir

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"berth.dev/berth/internal/provision"
)

func TestAVolumeIsStagedInTheDirectoryOfPlugins(t *testing.T) {
	base := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(base, "real"), 0o755), os.Symlink(filepath.Join(base, "real"), filepath.Join(base, "kubelet"))); err != nil {
		t.Fatal(err)
	}
	const staged, pod = "/plugins/kubernetes.io/csi/local.berth.dev/0a/globalmount", "/pods/a/volumes/kubernetes.io~csi/pvc-1/mount"
	d, in := New(base+"/kubelet"), func(paths ...string) (at []string) {
		for _, p := range paths {
			at = append(at, base+"/real"+p)
		}
		return at
	}
	for name, tc := range map[string]struct {
		mounted []string
		want    string
	}{
		"a staged volume that a pod has":       {in(pod, staged), base + "/kubelet" + staged},
		"a volume that only a pod has":         {in(pod), ""},
		"a volume that is mounted nowhere":     {nil, ""},
		"a volume that is mounted elsewhere":   {[]string{"/mnt" + staged, base + "/real-2" + staged}, ""},
		"the kubelet's directory of plugins-2": {in("/plugins-2/a"), ""},
	} {
		if got := d.Staged(tc.mounted); got != tc.want {
			t.Errorf("%s: %q; want %q", name, got, tc.want)
		}
	}
}

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
