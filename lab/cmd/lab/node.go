package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"berth.dev/berth/lab/internal/cluster"
)

// onNode returns a command that does one thing to one node.
func onNode(a *app, use, short string, do func(cluster.Node, context.Context) error) *cobra.Command {
	return &cobra.Command{
		Use:               use + " NODE",
		Short:             short,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeNodes,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.cluster()
			if err != nil {
				return err
			}
			return do(c.Node(args[0]), cmd.Context())
		},
	}
}

func powerCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "power", Short: "Power a node off, as a pulled plug does, and on again"}
	told := false
	off := onNode(a, "off", "Power a node off at once", func(n cluster.Node, ctx context.Context) error {
		if told {
			return n.PowerOffAndTell(ctx)
		}
		return n.PowerOff(ctx)
	})
	off.Flags().BoolVar(&told, "tell", false, "then say on its Node that the power is off, as a system that controls power does (berth.dev/powered-off)")
	cmd.AddCommand(
		off,
		onNode(a, "on", "Power a node on and wait until it answers", cluster.Node.PowerOn),
	)
	return cmd
}

func diskCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "disk", Short: "Add disks to a running node and pull them out"}
	cmd.AddCommand(diskAddCommand(a), diskShareCommand(a), diskRemoveCommand(a))
	return cmd
}

func diskAddCommand(a *app) *cobra.Command {
	bytes := size(10 << 30)
	cmd := &cobra.Command{
		Use:               "add NODE",
		Short:             "Add an empty disk and print its name and its device in the node",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeNodes,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.cluster()
			if err != nil {
				return err
			}
			disk, err := c.Node(args[0]).AddDisk(cmd.Context(), int64(bytes))
			return printLine(cmd.OutOrStdout(), fmt.Sprint(disk.Name, " ", disk.Device(args[0])), err)
		},
	}
	cmd.Flags().Var(&bytes, "size", "size of the disk")
	return cmd
}

func diskShareCommand(a *app) *cobra.Command {
	bytes, name := size(10<<30), ""
	cmd := &cobra.Command{
		Use:   "share NODE...",
		Short: "Give nodes one and the same disk, and print its name and its device in them",
		Long: `Share gives each node one and the same disk, as a shared disk of a cloud is attached to several machines.
Nothing keeps their writes apart, and the disk has no reservations: the units of lab san have. lab disk remove
takes it away from one node; the last removal deletes it.`,
		Example: "  lab disk share node1 node2 --size 1G\n  lab disk share node3 --disk shared1",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.cluster()
			if err != nil {
				return err
			}
			disk, err := c.SharedDisks().Share(cmd.Context(), args, name, int64(bytes))
			return printLine(cmd.OutOrStdout(), fmt.Sprint(disk.Name, " ", disk.Device(args[0])), err)
		},
	}
	cmd.Flags().Var(&bytes, "size", "size of a new disk")
	cmd.Flags().StringVar(&name, "disk", "", "name of a shared disk that exists, for more nodes")
	return cmd
}

func diskRemoveCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:               "remove NODE DISK",
		Short:             "Pull a disk out, in use or not, and delete it unless other nodes share it",
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: a.completeNodes,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.cluster()
			if err != nil {
				return err
			}
			return c.Node(args[0]).RemoveDisk(cmd.Context(), args[1])
		},
	}
}
