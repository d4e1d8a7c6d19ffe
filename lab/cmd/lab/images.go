package main

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"berth.dev/berth/lab/internal/catalog"
	"berth.dev/berth/lab/internal/guest"
	"berth.dev/berth/lab/internal/image"
	"berth.dev/berth/lab/internal/userland"
)

func imageCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "image", Short: "Make container images without a container engine"}
	cmd.AddCommand(imageWriteCommand(), imageUserlandCommand(a))
	return cmd
}

func imagesCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "images [NAME:TAG]...",
		Short: "Build the lab's own images and print them as lines of name and archive path",
		RunE: func(cmd *cobra.Command, args []string) error {
			store, err := a.store()
			if err != nil {
				return err
			}
			if err := guest.InstallPackages(cmd.Context(), a.report, catalog.MissingPackages(args...)); err != nil {
				return err
			}
			archives, err := catalog.Get(cmd.Context(), store, args...)
			if err != nil {
				return err
			}
			for _, i := range archives {
				fmt.Fprintln(cmd.OutOrStdout(), i.Ref, i.Path)
			}
			return nil
		},
	}
}

func imageUserlandCommand(a *app) *cobra.Command {
	architecture := runtime.GOARCH
	cmd := &cobra.Command{
		Use:   "userland",
		Short: "Print the path of a root filesystem tar with Debian's storage tools, made if need be",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			store, err := a.store()
			if err != nil {
				return err
			}
			path, err := userland.Get(cmd.Context(), store, architecture)
			return printLine(cmd.OutOrStdout(), path, err)
		},
	}
	cmd.Flags().StringVar(&architecture, "arch", architecture, "architecture of the tools: amd64 or arm64")
	return cmd
}

func imageWriteCommand() *cobra.Command {
	var s image.Spec
	var files, links []string
	cmd := &cobra.Command{
		Use:   "write ARCHIVE.tar --ref NAME:TAG [--layer ROOTFS.tar]... [--file /PATH=SOURCE]...",
		Short: "Write an image as an OCI archive, for `lab load`",
		Example: `  lab image write agent.tar --ref localhost/berth:dev --layer "$(lab image userland)" \
      --file /usr/bin/berth=bin/berth --entrypoint /usr/bin/berth`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			for _, f := range files {
				path, source, ok := strings.Cut(f, "=")
				if !ok {
					return fmt.Errorf("--file %q: use /path/in/image=source", f)
				}
				s.Files = append(s.Files, image.File{Path: path, Source: source})
			}
			for _, l := range links {
				path, target, ok := strings.Cut(l, "=")
				if !ok {
					return fmt.Errorf("--link %q: use /path/in/image=target", l)
				}
				s.Links = append(s.Links, image.Link{Path: path, Target: target})
			}
			return image.Write(args[0], s)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&s.Ref, "ref", "", "name of the image, for example localhost/berth:dev")
	flags.StringArrayVar(&s.Layers, "layer", nil, "root filesystem tar, lowest first")
	flags.StringArrayVar(&files, "file", nil, "file of this machine for the top layer, as /path/in/image=source")
	flags.StringArrayVar(&links, "link", nil, "symbolic link for the top layer, as /path/in/image=target")
	flags.StringArrayVar(&s.Entrypoint, "entrypoint", nil, "program and leading arguments, one flag for each")
	flags.StringArrayVar(&s.Cmd, "cmd", nil, "default arguments, one flag for each")
	flags.StringArrayVar(&s.Env, "env", nil, "environment variable, as NAME=VALUE")
	flags.StringVar(&s.User, "user", "", "numeric user, or user:group")
	flags.StringVar(&s.WorkDir, "workdir", "", "working directory")
	flags.StringToStringVar(&s.Labels, "label", nil, "label, as name=value")
	_ = cmd.MarkFlagRequired("ref")
	return cmd
}
