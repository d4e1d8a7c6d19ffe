package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"berth.dev/berth/lab/internal/guest"
)

// guestCommand returns the group of commands for machines that are no cluster nodes.
func guestCommand(a *app) *cobra.Command {
	group := &cobra.Command{Use: "guest", Short: "Virtual machines without Kubernetes"}
	group.AddCommand(guestRunCommand(a))
	return group
}

func guestRunCommand(a *app) *cobra.Command {
	o := guestRunOptions{cpus: 2, memory: 1 << 30, diskSize: 10 << 30}
	cmd := &cobra.Command{
		Use:   "run [flags] -- COMMAND [ARGUMENT]...",
		Short: "Run a command as root in a new virtual machine, which is gone afterwards",
		Long: `Run boots a virtual machine with a kernel, LVM and file system tools, copies
files into it, runs the command with its input, output and exit code passed
through, and removes the machine. Its disks are /dev/sda, /dev/sdb and so on.`,
		Example: `  lab guest run --disks 2 --copy $PWD/lvm.test:/root/lvm.test -- ./lvm.test -test.v`,
		Args:    cobra.MinimumNArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return runGuest(cmd, a, o, args) },
	}
	cmd.Flags().SetInterspersed(false)
	cmd.Flags().IntVar(&o.disks, "disks", 0, "number of empty disks")
	cmd.Flags().Var((*size)(&o.diskSize), "disk-size", "size of each disk")
	cmd.Flags().Var((*size)(&o.memory), "memory", "memory of the machine")
	cmd.Flags().IntVar(&o.cpus, "cpus", o.cpus, "processors of the machine")
	cmd.Flags().BoolVar(&o.zfs, "zfs", false, "a machine with ZFS, whose kernel modules take ten minutes to build the first time")
	cmd.Flags().StringArrayVar(&o.copies, "copy", nil, "copy a file into the machine, as HOSTPATH:GUESTPATH; may be repeated")
	cmd.Flags().StringArrayVar(&o.env, "env", nil, "set a variable for the command, as NAME=VALUE; may be repeated")
	return cmd
}

type guestRunOptions struct {
	disks, cpus      int
	diskSize, memory int64
	copies, env      []string
	zfs              bool
}

func (o guestRunOptions) spec() (guest.Spec, error) {
	files, err := parseCopies(o.copies)
	return guest.Spec{
		Name: "guest", CPUs: o.cpus, Memory: o.memory,
		Disks: guest.NewDisks(o.disks, o.diskSize),
		Seed:  guest.Seed{Files: files},
	}, err
}

func runGuest(cmd *cobra.Command, a *app, o guestRunOptions, argv []string) error {
	spec, err := o.spec()
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	if err := guest.InstallPackages(ctx, a.report, guest.MissingPackages()); err != nil {
		return err
	}
	store, err := a.store()
	if err != nil {
		return err
	}
	getImage := guest.GetImage
	if o.zfs {
		getImage = guest.GetZFSImage
	}
	if spec.Image, err = getImage(ctx, store); err != nil {
		return err
	}
	// In the cache directory, because throw-away machines need no root on the host.
	code, err := guest.Run(ctx, filepath.Join(store.Dir, "guests"), spec, guest.ExecRequest{
		Argv: argv, Env: o.env, Stdin: os.Stdin, Stdout: cmd.OutOrStdout(), Stderr: cmd.ErrOrStderr(),
	}, a.report)
	if err != nil {
		return err
	}
	if code != 0 {
		return exitError(code)
	}
	return nil
}

// parseCopies reads HOSTPATH:GUESTPATH pairs; the host's file keeps its mode.
func parseCopies(copies []string) ([]guest.File, error) {
	var files []guest.File
	for _, c := range copies {
		from, to, ok := strings.Cut(c, ":")
		if !ok || from == "" || !filepath.IsAbs(to) {
			return nil, fmt.Errorf("copy %q: must be HOSTPATH:GUESTPATH with an absolute GUESTPATH", c)
		}
		from, err := filepath.Abs(from)
		if err != nil {
			return nil, fmt.Errorf("copy %q: %w", c, err)
		}
		info, err := os.Stat(from)
		if err != nil {
			return nil, fmt.Errorf("copy %q: %w", c, err)
		}
		files = append(files, guest.File{Path: filepath.Clean(to), Mode: uint32(info.Mode().Perm()), Source: from})
	}
	return files, nil
}
