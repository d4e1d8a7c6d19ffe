package main

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"berth.dev/berth/hack/release/internal/oci"
	"berth.dev/berth/hack/release/internal/release"
)

func command() *cobra.Command {
	cmd := &cobra.Command{Use: "release", Short: "Write a release, and push it", SilenceUsage: true, SilenceErrors: true}
	cmd.AddCommand(write(), push())
	return cmd
}

func write() *cobra.Command {
	var c release.Config
	cmd := &cobra.Command{
		Use:   "write FOLDER",
		Short: "Write a release into a folder, which it replaces",
		Args:  cobra.ExactArgs(1),
		RunE:  func(_ *cobra.Command, args []string) error { return release.Write(args[0], c) },
	}
	flags := cmd.Flags()
	flags.StringVar(&c.Version, "version", "", "semantic version of the release")
	flags.StringVar(&c.Registry, "registry", "", "registry, and the path in it, where the chart finds Berth's images")
	flags.StringVar(&c.Downloads, "downloads", "", "address, with a slash at its end, from which krew downloads the plugin")
	flags.StringVar(&c.Programs, "programs", "", "directory of the programs, each NAME-OS-ARCHITECTURE")
	flags.StringToStringVar(&c.Userland, "userland", nil, "root filesystem tar with the agent's tools, as ARCHITECTURE=PATH")
	flags.StringVar(&c.Charts, "charts", "charts", "directory of the charts")
	flags.StringVar(&c.Licence, "licence", "LICENSE", "file with Berth's licence")
	flags.StringVar(&c.Sources.ModuleCache, "module-cache", "", "where Go keeps modules, for their licences")
	flags.StringVar(&c.Sources.Go, "go", "", "root of the Go toolchain, for its licence")
	for _, name := range []string{"version", "programs", "userland", "module-cache", "go"} {
		_ = cmd.MarkFlagRequired(name)
	}
	return cmd
}

func push() *cobra.Command {
	return &cobra.Command{
		Use:   "push FOLDER REGISTRY",
		Short: "Bring a release to a registry, such as registry.example.org/team",
		Args:  cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			store, err := oci.OpenStore(filepath.Join(args[0], release.Store))
			if err != nil {
				return err
			}
			return store.Push(cmd.Context(), args[1], func(pushed string) { fmt.Fprintln(cmd.OutOrStdout(), pushed) })
		},
	}
}
