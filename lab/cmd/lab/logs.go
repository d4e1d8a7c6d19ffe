package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
)

func loadCommand(a *app) *cobra.Command {
	var nodes []string
	cmd := &cobra.Command{
		Use:   "load [--node NODE]... IMAGE.tar...",
		Short: "Load image archives into the nodes",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.cluster()
			if err != nil {
				return err
			}
			return c.Load(cmd.Context(), nodes, args)
		},
	}
	cmd.Flags().StringArrayVar(&nodes, "node", nil, "only this node; may be repeated (default all)")
	return cmd
}

func logsCommand(a *app) *cobra.Command {
	var follow bool
	cmd := &cobra.Command{
		Use:   "logs [NAME]",
		Short: "Print a log, or the list of logs",
		Long: `Print the log of a process of the control plane (etcd, kube-apiserver, ...), of a
node's kubelet (node1) or of something else of a node (node1/containerd,
node1/console). Without a name, list all logs with their paths.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.cluster()
			if err != nil {
				return err
			}
			if len(args) == 0 {
				logs := c.Logs()
				for _, name := range slices.Sorted(maps.Keys(logs)) {
					fmt.Fprintln(cmd.OutOrStdout(), name, logs[name])
				}
				return nil
			}
			path, err := c.Log(args[0])
			if err != nil {
				return err
			}
			return printLog(cmd.Context(), cmd.OutOrStdout(), path, follow)
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on printing what is written to the log")
	return cmd
}

// printLog copies a log. If follow is set, it also copies lines that are appended later,
// until ctx ends.
func printLog(ctx context.Context, w io.Writer, path string, follow bool) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("opening log: %w", err)
	}
	defer f.Close()
	ticker := time.NewTicker(250 * time.Millisecond)
	defer ticker.Stop()
	for {
		if _, err := io.Copy(w, f); err != nil || !follow {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}
