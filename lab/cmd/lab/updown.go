package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"berth.dev/berth/lab/internal/cluster"
	"berth.dev/berth/lab/internal/network"
)

func upCommand(a *app) *cobra.Command {
	s := cluster.Settings{Memory: 2 << 30, DiskSize: 10 << 30}
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Bring the cluster up, or complete it",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			lab, err := a.lab()
			if err != nil {
				return err
			}
			if s.Images, err = absolute(s.Images); err != nil {
				return err
			}
			if err := checkSettings(cmd, lab, a.name, s); err != nil {
				return err
			}
			c, err := lab.Up(cmd.Context(), a.name, s)
			if err != nil {
				return err
			}
			a.close()
			fmt.Fprintf(os.Stderr, "\nThe cluster is up. To use it:\n  export KUBECONFIG=%s\n", c.Kubeconfig())
			return nil
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&s.Nodes, "nodes", 3, "number of nodes")
	flags.BoolVar(&s.Native, "native", false, "nodes that are parts of this machine, as fast as it and with its kernel, instead of virtual machines")
	flags.BoolVar(&s.Control, "control", false, "one node more, named control: part of this machine, without disks, and with a control plane's taint")
	flags.BoolVar(&s.ZFS, "zfs", os.Getenv("BERTH_LAB_ZFS") != "", "nodes with ZFS, whose kernel modules take ten minutes to build the first time; the default if BERTH_LAB_ZFS is set")
	flags.BoolVar(&s.StockTimeouts, "stock-timeouts", false, "Kubernetes' own time-outs: pods leave a lost node after five minutes, not after three seconds")
	flags.Var((*size)(&s.Memory), "memory", "memory of a virtual machine")
	flags.IntVar(&s.Disks, "disks", 2, "empty data disks of a node")
	flags.Var((*size)(&s.DiskSize), "disk-size", "size of a data disk")
	flags.StringVar(&s.Kubernetes, "kubernetes", os.Getenv(kubernetesMinor), "minor version of Kubernetes to build, such as 1.36; the newest if empty; the default is in "+kubernetesMinor)
	flags.StringVar(&s.Release, "release", "", "directory or base URL of official Kubernetes release binaries, instead of building them")
	flags.StringArrayVar(&s.Images, "image", nil, "OCI archive that every node has when it starts; may be repeated. For nodes that run: lab load")
	return cmd
}

func absolute(paths []string) ([]string, error) {
	var out []string
	for _, p := range paths {
		p, err := filepath.Abs(p)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// checkSettings refuses flags that contradict the running cluster: the lab cannot
// change them, and to ignore them would surprise the user.
func checkSettings(cmd *cobra.Command, lab cluster.Lab, name string, asked cluster.Settings) error {
	c, err := lab.Open(name)
	if errors.Is(err, cluster.ErrNotUp) {
		return nil
	}
	if err != nil || !c.Begun() {
		return err
	}
	is := c.Settings()
	for flag, differs := range map[string]bool{
		"nodes": is.Nodes != asked.Nodes, "memory": is.Memory != asked.Memory, "disks": is.Disks != asked.Disks,
		"disk-size": is.DiskSize != asked.DiskSize, "release": is.Release != asked.Release, "kubernetes": is.Kubernetes != asked.Kubernetes, "native": is.Native != asked.Native,
		"control": is.Control != asked.Control, "zfs": is.ZFS != asked.ZFS,
		"stock-timeouts": is.StockTimeouts != asked.StockTimeouts,
	} {
		if differs && cmd.Flags().Changed(flag) {
			return fmt.Errorf("cluster %q was made with another --%s: take it down first, or leave the flag out", name, flag)
		}
	}
	return nil
}

func downCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "End the cluster and remove everything of it",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			lab, err := a.lab()
			if err != nil {
				return err
			}
			return lab.Down(cmd.Context(), a.name)
		},
	}
}

func kubeconfigCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "kubeconfig",
		Short: "Print the path of a kubeconfig that works on this machine",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.cluster()
			if err != nil {
				return err
			}
			return printLine(cmd.OutOrStdout(), c.Kubeconfig(), nil)
		},
	}
}

// forwardCommand returns the command that the forwarder process runs.
func forwardCommand() *cobra.Command {
	var listen, netns, target string
	cmd := &cobra.Command{
		Use:    "forward",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return network.Forward(cmd.Context(), listen, netns, target)
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "", "address to listen on")
	cmd.Flags().StringVar(&netns, "netns", "", "path of the network namespace")
	cmd.Flags().StringVar(&target, "target", "", "address in the namespace")
	return cmd
}
