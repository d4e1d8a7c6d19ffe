package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"berth.dev/berth/lab/internal/cluster"
	"berth.dev/berth/lab/internal/san"
)

// sanCommand returns the group of commands for the cluster's storage target.
func sanCommand(a *app) *cobra.Command {
	group := &cobra.Command{
		Use:   "san",
		Short: "An iSCSI target with logical units that all nodes reach",
		Long: `The SAN is an iSCSI target at 10.77.0.2 with logical units that all nodes reach. It has
no passwords. The content of each unit is a raw file on this machine: lab status shows it.`,
		Example: `  lab san up --kind lio --persist --luns 2
  lab exec node1 -- iscsiadm -m discovery -t sendtargets -p 10.77.0.2
  lab exec node1 -- iscsiadm -m node --login`,
	}
	group.AddCommand(sanUpCommand(a), sanAddCommand(a), sanRemoveCommand(a), sanLatencyCommand(a),
		onSAN(a, "on", "Start the target again", cluster.SAN.Start),
		onSAN(a, "off", "End the target at once, as a loss of power does", cluster.SAN.Stop),
		onSAN(a, "restart", "End the target at once and start it again", cluster.SAN.Restart),
		onSAN(a, "down", "Remove the target with the content of all logical units", cluster.SAN.Remove))
	return group
}

func sanUpCommand(a *app) *cobra.Command {
	spec := cluster.SANSpec{Settings: san.Settings{Kind: san.TGT}, LUNs: 1, Size: 1 << 30}
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Make the target and start it, or complete it",
		Long: `Up makes the target and starts it. There are two kinds:

  tgt   tgtd, a process on this machine. It starts in a moment. It forgets reservations
        when it restarts, refuses those of the kernel's IOC_PR_REGISTER, and has no
        PREEMPT AND ABORT.
  lio   the kernel's target in a virtual machine of its own. With --persist reservations
        survive a restart if the initiator asked for it, as Linux does.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.cluster()
			if err != nil {
				return err
			}
			s, err := c.SAN().Make(cmd.Context(), spec)
			if err != nil {
				return err
			}
			a.close()
			for _, l := range s.LUNs() {
				fmt.Fprintln(cmd.OutOrStdout(), l.Number, l.File)
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&spec.Kind, "kind", spec.Kind, "kind of target: tgt or lio")
	flags.BoolVar(&spec.Persist, "persist", false, "reservations survive a restart of the target (kind lio)")
	flags.IntVar(&spec.LUNs, "luns", spec.LUNs, "number of logical units, at least")
	flags.Var((*size)(&spec.Size), "size", "size of each new logical unit")
	return cmd
}

// onSAN returns a command that does one thing to the SAN.
func onSAN(a *app, use, short string, do func(cluster.SAN, context.Context) error) *cobra.Command {
	return &cobra.Command{
		Use:   use,
		Short: short,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.cluster()
			if err != nil {
				return err
			}
			return do(c.SAN(), cmd.Context())
		},
	}
}

func sanAddCommand(a *app) *cobra.Command {
	bytes := size(1 << 30)
	cmd := &cobra.Command{
		Use:   "add",
		Short: "Add an empty logical unit and print its number and its file on this machine",
		Long:  "Add adds an empty logical unit. Nodes that are logged in see it after iscsiadm -m session --rescan.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.cluster()
			if err != nil {
				return err
			}
			l, err := c.SAN().AddLUN(cmd.Context(), int64(bytes))
			return printLine(cmd.OutOrStdout(), fmt.Sprint(l.Number, " ", l.File), err)
		},
	}
	cmd.Flags().Var(&bytes, "size", "size of the logical unit")
	return cmd
}

func sanRemoveCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "remove NUMBER",
		Short: "Take a logical unit away, in use or not, and delete its content",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			number, err := strconv.Atoi(args[0])
			if err != nil {
				return fmt.Errorf("logical unit %q: must be a number", args[0])
			}
			c, err := a.cluster()
			if err != nil {
				return err
			}
			return c.SAN().RemoveLUN(cmd.Context(), number)
		},
	}
}

func sanLatencyCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "latency DURATION",
		Short:   "Delay each answer of the target (kind lio); 0 ends it, and so does a restart",
		Example: "  lab san latency 20ms\n  lab san latency 0",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := time.ParseDuration(args[0])
			if err != nil {
				return fmt.Errorf("latency %q: use a duration such as 20ms", args[0])
			}
			c, err := a.cluster()
			if err != nil {
				return err
			}
			return c.SAN().Delay(cmd.Context(), d)
		},
	}
}

func printSAN(w io.Writer, s cluster.SANStatus) {
	persist, latency := "are forgotten by a restart", ""
	if s.Persist {
		persist = "survive a restart"
	}
	if s.Latency > 0 {
		latency = ", latency " + s.Latency.String()
	}
	fmt.Fprintf(w, "SAN %s is %s at %s as %s; reservations %s%s\n", s.Kind, s.Power, s.Portal, s.Target, persist, latency)
	fmt.Fprintln(w, "LUN\tSIZE\tFILE")
	for _, l := range s.LUNs {
		bytes := size(l.Size)
		fmt.Fprintf(w, "%d\t%s\t%s\n", l.Number, bytes.String(), l.File)
	}
}
