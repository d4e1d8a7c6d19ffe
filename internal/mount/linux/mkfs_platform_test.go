//go:build platform

package linux_test

import (
	"strings"
	"testing"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/run"
)

// Each option is here at least once: the tool must support the whole list.
func TestOptionsOfMkfsAreSeenInTheFilesystem(t *testing.T) {
	d := newDevices(t)
	for name, tc := range map[string]struct {
		fs, options string
		shows       []string
	}{
		"ext4 with the defaults": {provision.Ext4, "", []string{"Inode size: 256", "Reserved block count: 0"}},
		"ext4 for small files on a stripe": {
			provision.Ext4,
			"-b 1024 -E nodiscard,lazy_itable_init=0,lazy_journal_init=0,packed_meta_blocks=1,stride=4,stripe_width=16 -i 4096 -I 512 -J size=8 -m 3 -O large_dir,metadata_csum,metadata_csum_seed,orphan_file",
			[]string{"Block size: 1024", "Inode size: 512", "RAID stride: 4", "RAID stripe width: 16", "Inode count: 81920", "large_dir", "metadata_csum_seed", "orphan_file"},
		},
		"ext4 for a few inodes": {
			provision.Ext4, "-b 2048 -E discard -I 1024 -N 1024 -O ^large_dir,^metadata_csum,^metadata_csum_seed,^orphan_file",
			[]string{"Block size: 2048", "Inode size: 1024", "Reserved block count: 0"},
		},
		"xfs with the defaults": {provision.XFS, "", []string{"isize=512", "bsize=4096"}},
		"xfs for old kernels on a stripe": {
			provision.XFS,
			"-b size=1024 -d agcount=2,su=64k,sw=2 -i size=512,maxpct=10,sparse=0 -K -l size=64m,su=32k -m bigtime=0,crc=1,finobt=0,inobtcount=0,reflink=0,rmapbt=0 -n size=4096 -s size=1024",
			[]string{"agcount=2", "isize=512", "sectsz=1024", "finobt=0", "reflink=0", "bigtime=0", "imaxpct=10", "sunit=64 swidth=128", "naming =version 2 bsize=4096"},
		},
		"xfs with all features": {
			provision.XFS, "-i size=2048,nrext64=1,sparse=1 -m bigtime=1,finobt=1,inobtcount=1,reflink=1,rmapbt=1 -n size=65536 -s size=4096",
			[]string{"isize=2048", "sectsz=4096", "finobt=1", "reflink=1", "rmapbt=1", "bigtime=1", "naming =version 2 bsize=65536"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			device, target := d.make(""), t.TempDir()+"/a"
			if err := d.mounter.Mkfs(t.Context(), device, tc.fs, tc.options); err != nil {
				t.Fatal(err)
			}
			if err := d.mounter.Mount(t.Context(), request(device, tc.fs, target)); err != nil {
				t.Fatal(err)
			}
			got := shown(t, tc.fs, device.Content.Source, target)
			for _, want := range tc.shows {
				if !strings.Contains(got, want) {
					t.Errorf("no %q in:\n%s", want, got)
				}
			}
			if strings.Contains(tc.options, "^metadata_csum") && strings.Contains(got, "metadata_csum") {
				t.Errorf("a feature that was turned off is there:\n%s", got)
			}
			if err := d.mounter.Unmount(t.Context(), target); err != nil {
				t.Error(err)
			}
		})
	}
}

// shown returns the tools' description of a mounted filesystem, with one blank between words.
func shown(t *testing.T, fs, device, target string) string {
	t.Helper()
	c := run.Command{Operation: "tune2fs", Program: "tune2fs", Args: []string{"-l", device}}
	if fs == provision.XFS {
		c = run.Command{Operation: "xfs_growfs", Program: "xfs_growfs", Args: []string{"-n", target}}
	}
	out, err := run.Exec{}.Query(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(string(out)), " ")
}
