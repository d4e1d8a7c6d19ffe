package guest

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"berth.dev/berth/lab/internal/artefact"
)

// kernelPackage is Debian's kernel for guests.
const kernelPackage = "linux-image-cloud-amd64"

// zfsKernelPackages are the kernel and the packages that build ZFS for it: Debian has the
// modules of ZFS as source only. Compiler and headers stay out of the guests.
var zfsKernelPackages = []string{kernelPackage, "linux-headers-cloud-amd64", "zfs-dkms"}

// zfsKernelDirs are the directories that a guest needs of a tree with those packages.
var zfsKernelDirs = []string{"boot", "lib/modules"}

// zfsKernelRecipe makes the kernel with ZFS among its modules. It is separate from the
// root filesystem, which changes more often and takes less time. Kernel and modules are
// one artefact, so that they always fit each other.
func zfsKernelRecipe() artefact.Recipe {
	return artefact.Recipe{
		Name: "guest-kernel-zfs",
		Key:  append([]string{"layout 1", suite}, zfsKernelPackages...),
		Make: makeZFSKernel,
	}
}

func makeZFSKernel(ctx context.Context, dir string, log io.Writer) error {
	tree := filepath.Join(dir, "tree")
	if err := installDebian(ctx, debian{tree, "main,contrib", zfsKernelPackages}, log); err != nil {
		return err
	}
	built, err := filepath.Glob(filepath.Join(tree, "lib/modules/*/updates/dkms/zfs.ko*"))
	if err != nil {
		return err
	}
	if len(built) != 1 {
		return fmt.Errorf("the packages built ZFS %d times, want once: their log is in var/lib/dkms of %s", len(built), tree)
	}
	for _, name := range zfsKernelDirs {
		to := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.Rename(filepath.Join(tree, name), to); err != nil {
			return fmt.Errorf("taking the kernel out of the tree: %w", err)
		}
	}
	return os.RemoveAll(tree)
}

// zfsRootRecipe makes the root filesystem of guests with ZFS.
func zfsRootRecipe(ctx context.Context, store *artefact.Store) (artefact.Recipe, error) {
	kernelRecipe := zfsKernelRecipe()
	kernel, err := store.Get(ctx, kernelRecipe)
	if err != nil {
		return artefact.Recipe{}, err
	}
	packages := []string{"zfsutils-linux"}
	for _, name := range guestPackages {
		if name != kernelPackage {
			packages = append(packages, name)
		}
	}
	return artefact.Recipe{
		Name: "guest-root-zfs",
		Key:  append([]string{"layout 1", suite, rootSize, strings.Join(bootModules, " "), kernelRecipe.Address()}, slices.Sorted(slices.Values(packages))...),
		Make: func(ctx context.Context, dir string, log io.Writer) error {
			tree := filepath.Join(dir, "tree")
			if err := installDebian(ctx, debian{tree, "main,contrib", packages}, log); err != nil {
				return err
			}
			for _, name := range zfsKernelDirs {
				if err := copyTree(filepath.Join(tree, name), filepath.Join(kernel, name)); err != nil {
					return fmt.Errorf("copying the kernel into the root filesystem: %w", err)
				}
			}
			return finishRoot(ctx, tree, dir, log)
		},
	}, nil
}

// copyTree copies a directory's files. It leaves out links, which lead to the directory
// that the modules were built in.
func copyTree(to, from string) error {
	return filepath.WalkDir(from, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		switch {
		case entry.IsDir():
			return os.MkdirAll(filepath.Join(to, name), 0o755)
		case entry.Type().IsRegular():
			return copyFile(filepath.Join(to, name), path)
		}
		return nil
	})
}

func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}
