package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"berth.dev/berth/lab/internal/cluster"
)

func statusCommand(a *app) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show what runs",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.cluster()
			if err != nil {
				return err
			}
			s, err := c.Status(cmd.Context())
			if err != nil {
				return err
			}
			switch output {
			case "json":
				encoder := json.NewEncoder(cmd.OutOrStdout())
				encoder.SetIndent("", "  ")
				return encoder.Encode(s)
			case "":
				return printStatus(cmd.OutOrStdout(), s)
			default:
				return fmt.Errorf("output format %q: only json is known", output)
			}
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "output format: json, or a table if empty")
	return cmd
}

func printStatus(w io.Writer, s cluster.Status) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "PROCESS\tSTATE\tPID\tLOG")
	for _, p := range s.Processes {
		state, pid := "ended", "-"
		if p.Running {
			state, pid = "running", fmt.Sprint(p.PID)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", p.Name, state, pid, p.Log)
	}
	fmt.Fprintln(t)
	fmt.Fprintln(t, "NODE\tPOWER\tNETWORK\tREADY\tDISKS")
	for _, n := range s.Nodes {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", n.Name, n.Power, networkOf(n), orDash(n.Ready), orDash(disks(n.Disks)))
	}
	if s.SAN != nil {
		fmt.Fprintln(t)
		printSAN(t, *s.SAN)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if s.Problem != "" {
		fmt.Fprintf(w, "\n%s\n", s.Problem)
	}
	return nil
}

// networkOf returns the faults of a node's network, or that it has none.
func networkOf(n cluster.NodeStatus) string {
	var faults []string
	if n.Cut {
		faults = append(faults, "cut")
	}
	for _, part := range n.Lost {
		faults = append(faults, "cut from "+string(part))
	}
	if link := n.Link.String(); link != "" {
		faults = append(faults, link)
	}
	if len(faults) == 0 {
		return "connected"
	}
	return strings.Join(faults, ", ")
}

func disks(all []cluster.DiskStatus) string {
	var names []string
	for _, d := range all {
		bytes := size(d.Size)
		names = append(names, fmt.Sprintf("%s(%s)", d.Name, bytes.String()))
	}
	return strings.Join(names, " ")
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
