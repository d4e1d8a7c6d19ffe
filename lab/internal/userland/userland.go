package userland

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"

	"berth.dev/berth/lab/internal/artefact"
	"berth.dev/berth/lab/internal/process"
)

// needed are the programs without which the result is useless.
var needed = []string{
	"blkid", "blockdev", "btrfs", "dmsetup", "e2fsck", "findmnt", "fsck", "fsfreeze", "fstrim", "losetup", "lsblk", "lvm",
	"mkfs.btrfs", "mkfs.ext4", "mkfs.xfs", "mount", "nsenter", "resize2fs", "thin_check", "tune2fs", "umount", "wipefs",
	"xfs_growfs", "xfs_repair", "zfs", "zpool",
}

// format is part of the key: raise it if the same packages must give another tree.
const format = "3"

// Get returns the path of the root filesystem tar for an architecture, amd64 or arm64,
// made if need be.
func Get(ctx context.Context, store *artefact.Store, architecture string) (string, error) {
	from, err := openArchive(ctx, store, architecture)
	if err != nil {
		return "", err
	}
	debs, err := from.resolve(ctx, io.Discard)
	if err != nil {
		return "", err
	}
	key := []string{format, architecture, strings.Join(unwanted, " "), strings.Join(dropped, " ")}
	for _, d := range debs {
		key = append(key, d.String())
	}
	dir, err := store.Get(ctx, artefact.Recipe{Name: "userland", Key: key, Make: func(ctx context.Context, dir string, log io.Writer) error {
		return from.assemble(ctx, dir, debs, log)
	}})
	return filepath.Join(dir, "rootfs.tar"), err
}

func (a archive) assemble(ctx context.Context, dir string, debs []deb, log io.Writer) error {
	packages, err := os.MkdirTemp("", "berth-lab-debs-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(packages)
	files, err := a.download(ctx, packages, debs, log)
	if err != nil {
		return err
	}
	t := tree{}
	for _, file := range files {
		if err := errors.Join(t.unpack(ctx, file, log), t.record(ctx, file, log)); err != nil {
			return fmt.Errorf("unpacking %s: %w", filepath.Base(file), err)
		}
	}
	t.addBase()
	for _, name := range t.dropBroken() {
		fmt.Fprintln(log, "dropped, as it cannot be loaded:", name)
	}
	if missing := t.missing(needed); len(missing) > 0 {
		return fmt.Errorf("the packages left out break %s", strings.Join(missing, ", "))
	}
	out, err := os.Create(filepath.Join(dir, "rootfs.tar"))
	if err != nil {
		return err
	}
	return errors.Join(t.write(out), out.Close())
}

// unpack adds a package's files to the tree.
func (t tree) unpack(ctx context.Context, file string, log io.Writer) error {
	r, w := io.Pipe()
	var g errgroup.Group
	g.Go(func() error {
		err := process.Run(ctx, process.Command{Path: "dpkg-deb", Args: []string{"--fsys-tarfile", file}, Stdout: w, Log: log})
		w.CloseWithError(err)
		return err
	})
	err := t.add(r)
	if err == nil {
		_, err = io.Copy(io.Discard, r) // dpkg-deb pads after the end of the archive
	}
	r.CloseWithError(err)
	return errors.Join(err, g.Wait())
}

// records is where images without a package manager say which packages they have: scanners
// look for them there.
const records = "var/lib/dpkg/status.d"

// record adds a package's description to the tree, in a file of the package's name.
func (t tree) record(ctx context.Context, file string, log io.Writer) error {
	control, err := process.Output(ctx, process.Command{Path: "dpkg-deb", Args: []string{"--field", file}, Log: log})
	if err != nil {
		return err
	}
	name, _, _ := strings.Cut(filepath.Base(file), "_")
	for dir := records; dir != "."; dir = path.Dir(dir) {
		t.put(dir, &tar.Header{Typeflag: tar.TypeDir, Mode: 0o755}, nil)
	}
	t.put(records+"/"+name, &tar.Header{Typeflag: tar.TypeReg, Mode: 0o644}, append(control, '\n'))
	return nil
}
