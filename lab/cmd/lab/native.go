package main

import (
	"github.com/spf13/cobra"

	"berth.dev/berth/lab/internal/native"
)

// nativeCommands returns the commands that the processes of a native node run.
func nativeCommands() []*cobra.Command {
	return []*cobra.Command{
		{
			Use: "node-init DIR", Hidden: true, Args: cobra.ExactArgs(1),
			RunE: func(_ *cobra.Command, args []string) error { return native.Init(args[0]) },
		},
		{
			Use: "node-serve", Hidden: true, Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return native.Serve(cmd.Context()) },
		},
	}
}
