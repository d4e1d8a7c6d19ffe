package kubeletdir

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"berth.dev/berth/internal/provision"
)

const uid = "0f3c1c9e-1d2b-4c3d-8e4f-5a6b7c8d9e0f"

func TestATargetSaysWhichVolumeOfWhichPodItIsFor(t *testing.T) {
	dir := t.TempDir()
	for name, tc := range map[string]struct {
		target string
		ok     bool
	}{
		"a volume's mount":                        {"/pods/" + uid + "/volumes/kubernetes.io~csi/scratch/mount", true},
		"a volume's directory":                    {"/pods/" + uid + "/volumes/kubernetes.io~csi/scratch", false},
		"a file in the volume":                    {"/pods/" + uid + "/volumes/kubernetes.io~csi/scratch/mount/x", false},
		"a volume of another kind":                {"/pods/" + uid + "/volumes/kubernetes.io~empty-dir/scratch/mount", false},
		"a raw block volume":                      {"/plugins/kubernetes.io/csi/volumeDevices/publish/pvc-1/" + uid, false},
		"a volume without a pod":                  {"/pods/volumes/kubernetes.io~csi/scratch/mount", false},
		"a path out of the directory":             {"/pods/../../volumes/kubernetes.io~csi/scratch/mount", false},
		"a directory beside the mount point":      {"/pods/" + uid + "/volumes/kubernetes.io~csi/scratch/other", false},
		"the directory of all volumes of the pod": {"/pods/" + uid + "/volumes/kubernetes.io~csi", false},
	} {
		t.Run(name, func(t *testing.T) {
			pod, volume, err := New(dir).PodVolume(dir + tc.target)
			switch {
			case tc.ok && (err != nil || pod != uid || volume != "scratch"):
				t.Errorf("read %q of %q, %v", volume, pod, err)
			case !tc.ok && !errors.Is(err, provision.ErrInvalid):
				t.Errorf("error %v; want %v", err, provision.ErrInvalid)
			}
		})
	}
}

func TestThePodOfATargetIsThatWhoseVolumeIsThere(t *testing.T) {
	dir := t.TempDir()
	for target, want := range map[string]string{
		"/pods/" + uid + "/volumes/kubernetes.io~csi/data/mount":              uid,
		"/plugins/kubernetes.io/csi/volumeDevices/publish/data/" + uid:        uid,
		"/plugins/kubernetes.io/csi/volumeDevices/staging/data/" + uid:        "",
		"/plugins/kubernetes.io/csi/disk.berth.dev/0123456789/globalmount":    "",
		"/plugins/kubernetes.io/csi/volumeDevices/publish/data/" + uid + "/x": "",
		"/pods": "",
	} {
		if got := New(dir).PodOf(dir + target); got != want {
			t.Errorf("that of %s is %q", target, got)
		}
	}
}

func TestATargetIsKeptUnlessTheKubeletsDirectoryProvesThatItIsGone(t *testing.T) {
	dir := t.TempDir()
	d, target := New(dir), filepath.Join(dir, "pods", uid, "volumes/kubernetes.io~csi/data/mount")
	if !d.Has(target) {
		t.Error("a directory without pods proves that a target is gone")
	}
	if err := os.MkdirAll(target, 0o750); err != nil {
		t.Fatal(err)
	}
	if !d.Has(target) {
		t.Error("a target that is there counts as gone")
	}
	if err := os.Remove(target); err != nil {
		t.Fatal(err)
	}
	if d.Has(target) {
		t.Error("a target that was removed counts as kept")
	}
}

func TestAPodsVolumeIsThereAsLongAsItsMountPointIs(t *testing.T) {
	dir := t.TempDir()
	d := New(dir)
	if _, err := d.HasPodVolume(uid, "scratch"); err == nil {
		t.Error("a directory without pods proves that a volume is gone")
	}
	volumes := filepath.Join(dir, "pods", uid, "volumes/kubernetes.io~csi")
	for _, place := range []string{"scratch/mount", "leftover"} {
		if err := os.MkdirAll(filepath.Join(volumes, place), 0o750); err != nil {
			t.Fatal(err)
		}
	}
	// This is all that a kubelet may leave of a volume when its machine is lost.
	if err := os.WriteFile(filepath.Join(volumes, "leftover", "vol_data.json"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		pod, volume string
		want, fails bool
	}{
		"the volume":                       {uid, "scratch", true, false},
		"an unknown volume of the pod":     {uid, "cache", false, false},
		"a leftover without a mount point": {uid, "leftover", false, false},
		"a volume of an unknown pod":       {"another", "scratch", false, false},
		"a name that is a path":            {uid, "../../volumes", false, true},
		"a pod that is a path":             {"../pods/" + uid, "scratch", false, true},
		"no name":                          {uid, "", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := d.HasPodVolume(tc.pod, tc.volume)
			if got != tc.want || (err != nil) != tc.fails {
				t.Errorf("there: %v, %v", got, err)
			}
		})
	}
}
