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
	"berth.dev/berth/lab/internal/process"
)

const (
	kernelFile = "vmlinuz"
	rootFile   = "root.img"
	bootDir    = "modules" // modules of the initramfs, in load order by name

	// The guests' Debian is the same on every machine, whatever system that runs. It
	// comes from debootstrap's own mirror.
	suite   = "bookworm"
	keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"

	// rootSize is the size of the root filesystem; the file is sparse.
	rootSize = "24G"
)

// guestPackages are the packages that a storage system finds on an ordinary node, and the
// kernel. Each adds to the time of the first start.
var guestPackages = []string{
	"btrfs-progs", "cryptsetup-bin", "dmeventd", "e2fsprogs", "iproute2", "iptables", "iputils-ping", "kmod",
	"linux-image-cloud-amd64", "lvm2", "mount", "nftables", "open-iscsi", "parted", "procps", "sg3-utils",
	"thin-provisioning-tools", "udev", "util-linux", "xfsprogs",
}

// rootRecipe makes the root filesystem and takes the kernel out of it.
func rootRecipe() artefact.Recipe {
	return artefact.Recipe{
		Name: "guest-root",
		Key:  append([]string{"layout 1", suite, rootSize, strings.Join(bootModules, " ")}, guestPackages...),
		Make: makeRoot,
	}
}

func makeRoot(ctx context.Context, dir string, log io.Writer) error {
	tree := filepath.Join(dir, "tree")
	if err := installDebian(ctx, debian{tree: tree, components: "main", packages: guestPackages}, log); err != nil {
		return err
	}
	return finishRoot(ctx, tree, dir, log)
}

// debian describes a directory with Debian, and how to install it.
type debian struct {
	tree, components string
	packages         []string
}

func installDebian(ctx context.Context, d debian, log io.Writer) error {
	err := process.Run(ctx, process.Command{
		Path: "debootstrap",
		Args: []string{
			"--variant=minbase", "--components=" + d.components, "--keyring=" + keyring,
			"--include=" + strings.Join(d.packages, ","), suite, d.tree,
		},
		// The lab makes its own initramfs, so Debian makes none.
		Env: []string{"INITRD=No", "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C"},
		Log: log,
	})
	if err != nil {
		return fmt.Errorf("installing Debian %s: %w", suite, err)
	}
	return nil
}

// finishRoot turns a tree with a kernel in it into the files that guests boot from.
func finishRoot(ctx context.Context, tree, dir string, log io.Writer) error {
	if err := takeKernel(tree, dir); err != nil {
		return fmt.Errorf("taking the kernel out of the root filesystem: %w", err)
	}
	if err := trim(tree); err != nil {
		return fmt.Errorf("trimming the root filesystem: %w", err)
	}
	if err := MakeExt4(ctx, Ext4{Tree: tree, Image: filepath.Join(dir, rootFile), Size: rootSize}, log); err != nil {
		return err
	}
	return os.RemoveAll(tree)
}

// takeKernel moves the kernel and copies the boot modules from tree to dir.
func takeKernel(tree, dir string) error {
	kernels, err := filepath.Glob(filepath.Join(tree, "boot/vmlinuz-*"))
	if err != nil {
		return fmt.Errorf("looking for the kernel: %w", err)
	}
	if len(kernels) != 1 {
		return fmt.Errorf("found %d kernels, want 1", len(kernels))
	}
	version := strings.TrimPrefix(filepath.Base(kernels[0]), "vmlinuz-")
	if err := os.Rename(kernels[0], filepath.Join(dir, kernelFile)); err != nil {
		return err
	}
	return copyBootModules(filepath.Join(tree, "lib/modules", version), filepath.Join(dir, bootDir))
}

func copyBootModules(modules, to string) error {
	deps, err := parseFile(filepath.Join(modules, "modules.dep"), parseDependencies)
	if err != nil {
		return err
	}
	builtin, err := parseFile(filepath.Join(modules, "modules.builtin"), parseBuiltin)
	if err != nil {
		return err
	}
	files, err := deps.order(bootModules, builtin)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for i, file := range files {
		data, err := os.ReadFile(filepath.Join(modules, file))
		if err != nil {
			return err
		}
		name := fmt.Sprintf("%02d-%s.ko", i, moduleName(file))
		if err := os.WriteFile(filepath.Join(to, name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func parseFile[T any](path string, parse func(io.Reader) (T, error)) (T, error) {
	f, err := os.Open(path)
	if err != nil {
		var none T
		return none, err
	}
	defer f.Close()
	return parse(f)
}

// trim removes files that no guest reads, and adds those that every guest must have.
func trim(tree string) error {
	for _, name := range []string{
		"boot", "var/cache/apt", "var/lib/apt/lists", "var/cache/debconf", "var/log",
		"usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/info", "etc/resolv.conf",
	} {
		if err := os.RemoveAll(filepath.Join(tree, name)); err != nil {
			return err
		}
	}
	for _, name := range []string{"var/log", "boot", "opt/lab", "var/cache/apt"} {
		if err := os.MkdirAll(filepath.Join(tree, name), 0o755); err != nil {
			return err
		}
	}
	// Without this file no pod sandbox starts.
	return os.WriteFile(filepath.Join(tree, "etc/hosts"), []byte("127.0.0.1 localhost\n::1 localhost\n"), 0o644)
}

// Ext4 describes a disk image to be made.
type Ext4 struct {
	Tree     string // directory whose copy the image holds
	Image    string // path of the image
	Size     string // as mke2fs takes it; the file is sparse
	ReadOnly bool   // nothing will ever write to it: it needs no journal
}

// MakeExt4 makes a disk image. Nothing is mounted.
func MakeExt4(ctx context.Context, e Ext4, log io.Writer) error {
	journal := []string{"-J", "size=64"}
	if e.ReadOnly {
		journal = []string{"-O", "^has_journal"}
	}
	args := slices.Concat([]string{"-q", "-F", "-t", "ext4", "-m", "0"}, journal,
		[]string{"-E", "lazy_itable_init=1,lazy_journal_init=1,nodiscard", "-d", e.Tree, e.Image, e.Size})
	if err := process.Run(ctx, process.Command{Path: "mke2fs", Args: args, Log: log}); err != nil {
		return fmt.Errorf("making disk image %s: %w", filepath.Base(e.Image), err)
	}
	return nil
}
