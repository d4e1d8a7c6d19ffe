package trial_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/replicate/trial"
)

// folder mounts one folder: its files are at the target while it is mounted.
type folder struct {
	mount.Mounter
	dir string
}

func (f folder) Mount(_ context.Context, r mount.Request) error { return move(f.dir, r.Target) }

func (f folder) Unmount(_ context.Context, target string) error { return move(target, f.dir) }

func move(from, to string) error {
	files, err := os.ReadDir(from)
	for _, file := range files {
		if err == nil {
			err = os.Rename(filepath.Join(from, file.Name()), filepath.Join(to, file.Name()))
		}
	}
	return err
}

func TestFilesThatDidNotArriveWholeAreFound(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(dir string) error
		want  string
	}{
		"all is there":            {func(string) error { return nil }, ""},
		"a file is missing":       {func(dir string) error { return os.Remove(filepath.Join(dir, "2.500")) }, "seeds [2] are missing"},
		"a file is too short":     {func(dir string) error { return os.Truncate(filepath.Join(dir, "1.9000"), 8999) }, "1.9000 has 8999 bytes"},
		"a file is empty":         {func(dir string) error { return os.Truncate(filepath.Join(dir, "1.9000"), 0) }, "1.9000 has 0 bytes"},
		"a file has more":         {func(dir string) error { return os.Truncate(filepath.Join(dir, "1.9000"), 9001) }, "byte 9000 of file 1.9000"},
		"a byte is another one":   {func(dir string) error { return os.WriteFile(filepath.Join(dir, "2.500"), make([]byte, 500), 0o600) }, "of file 2.500 is not what was written"},
		"there is a strange file": {func(dir string) error { return os.WriteFile(filepath.Join(dir, "3.0"), nil, 0o600) }, `file "3.0" is none`},
		"a file is there twice":   {func(dir string) error { return os.WriteFile(filepath.Join(dir, "2.0"), nil, 0o600) }, "none that was written"},
	} {
		t.Run(name, func(t *testing.T) {
			data, volume := trial.Files{Mounter: folder{dir: t.TempDir()}}, provision.Volume{}
			for seed, bytes := range map[uint64]int64{1: 9000, 2: 500} {
				if err := data.Fill(t.Context(), volume, seed, bytes); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.spoil(data.Mounter.(folder).dir); err != nil {
				t.Fatal(err)
			}
			bytes, err := data.Compare(t.Context(), volume, 1, 2)
			switch {
			case c.want == "" && (err != nil || bytes != 9500):
				t.Errorf("%d bytes, %v", bytes, err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("%v, and it should be about %q", err, c.want)
			}
		})
	}
}
