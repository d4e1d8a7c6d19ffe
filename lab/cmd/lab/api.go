package main

import (
	"path/filepath"

	"github.com/spf13/cobra"

	"berth.dev/berth/lab/internal/controlplane"
)

func apiCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "api", Short: "Save the state of the API server and set it back"}
	cmd.AddCommand(apiBackupCommand(a), apiRestoreCommand(a))
	return cmd
}

func apiBackupCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "backup FILE",
		Short: "Save the state of the API server to a file, while the cluster runs",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := filepath.Abs(args[0])
			if err != nil {
				return err
			}
			c, err := a.cluster()
			if err != nil {
				return err
			}
			return c.ControlPlane().Backup(cmd.Context(), file)
		},
	}
}

func apiRestoreCommand(a *app) *cobra.Command {
	var r controlplane.Restoration
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Set the API server back to a state that was saved",
		Long: `Restore sets the API server back to a state that "lab api backup" saved. Nodes,
their disks and what runs on them stay as they are, and go on meanwhile.

Revisions go on a thousand million above the backup's, so that everybody who watches
reads everything anew: etcd's documentation says so for Kubernetes. With --back-in-time
they go back with the state, as they do where an administrator gives etcdutl no
flags: whoever watches notices nothing until they have caught up.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if r.File, err = filepath.Abs(args[0]); err != nil {
				return err
			}
			c, err := a.cluster()
			if err != nil {
				return err
			}
			return c.ControlPlane().Restore(cmd.Context(), r)
		},
	}
	cmd.Flags().BoolVar(&r.BackInTime, "back-in-time", false, "let revisions go back with the state")
	return cmd
}
