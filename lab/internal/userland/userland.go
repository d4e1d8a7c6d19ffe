package userland

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
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
const format = "1"

// Get returns the path of the root filesystem tar, made if need be.
func Get(ctx context.Context, store *artefact.Store) (string, error) {
	from, err := openArchive(ctx, store)
	if err != nil {
		return "", err
	}
	debs, err := from.resolve(ctx, io.Discard)
	if err != nil {
		return "", err
	}
	key := []string{format, strings.Join(unwanted, " "), strings.Join(dropped, " ")}
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
		if err := t.unpack(ctx, file, log); err != nil {
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
