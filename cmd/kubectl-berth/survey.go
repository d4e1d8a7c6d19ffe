package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"berth.dev/berth/internal/plain"
	"berth.dev/berth/internal/quantity"
	"berth.dev/berth/internal/survey"
)

// view is a command that shows how the cluster stands.
type view struct {
	use, short, long string
	// look returns the answer, and how it is written for people.
	look func(ctx context.Context, q question, c survey.Cluster) (answer any, text func(to io.Writer, wide bool) error, err error)
}

var views = []view{
	{"status", "Say on one screen whether all is well, what is full and what waits", `Say on one screen whether all is well, what is full and what waits.

Each problem is a sentence, with the next thing to look at.`, showStatus},
	{"nodes", "List the nodes with Berth's agents, and their pools' bytes", "", showNodes},
	{"pools", "List the pools of all nodes, and how full they are", `List the pools of all nodes, and how full they are.

USED is what is promised to volumes, and what others than Berth use. The figures
are those by which the schedulers place pods.`, showPools},
	{"volumes", "List the volumes, with their claims and nodes", "", showVolumes},
}

// viewCommands show how the cluster stands.
func viewCommands(t *target, connect connector) []*cobra.Command {
	var all []*cobra.Command
	for _, v := range views {
		var o output
		cmd := &cobra.Command{
			Use: v.use, Short: v.short, Long: v.long, Args: cobra.NoArgs,
			Example: fmt.Sprintf("  kubectl berth %s\n  kubectl berth %s -o json", v.use, v.use),
			RunE: func(cmd *cobra.Command, _ []string) error {
				if err := o.check(); err != nil {
					return err
				}
				reader, namespace, err := connect(*t)
				if err != nil {
					return err
				}
				q := question{reader: reader, system: t.system, namespace: namespace, notes: cmd.ErrOrStderr()}
				found, err := gather(cmd.Context(), q)
				if err != nil {
					return err
				}
				answer, text, err := v.look(cmd.Context(), q, survey.Cluster{Lists: found.Lists, Heartbeats: found.Heartbeats})
				if err != nil {
					return err
				}
				return o.write(cmd.OutOrStdout(), answer, text)
			},
		}
		o.flag(cmd)
		all = append(all, cmd)
	}
	return all
}

func showNodes(_ context.Context, _ question, c survey.Cluster) (any, func(io.Writer, bool) error, error) {
	rows := c.NodeRows()
	t := table{header: []string{"NAME", "STATE", "POOLS", "SIZE", "USED", "VOLUMES", "ORPHANS", "MESSAGE"}, narrow: 7}
	for _, n := range rows {
		t.rows = append(t.rows, []string{
			n.Name, n.State, strconv.Itoa(n.Pools), quantity.Rough(n.Total), used(n.Used, n.Total), strconv.Itoa(n.Volumes), strconv.Itoa(n.Orphans), n.Message,
		})
	}
	return rows, t.write, nil
}

func showPools(_ context.Context, _ question, c survey.Cluster) (any, func(io.Writer, bool) error, error) {
	rows := c.PoolRows()
	t := table{header: []string{"NODE", "NAME", "TYPE", "HEALTH", "SIZE", "USED", "FILLED", "VOLUMES", "FOREIGN", "CLASSES", "MESSAGE"}, narrow: 8}
	for _, p := range rows {
		filled := "-"
		if p.FilledPercent != nil {
			filled = fmt.Sprintf("%d%%", *p.FilledPercent)
		}
		t.rows = append(t.rows, []string{
			p.Node, p.Name, p.Type, string(p.Health), quantity.Rough(p.Total), used(p.Used, p.Total), filled, strconv.Itoa(p.Volumes),
			quantity.Rough(p.Foreign), strings.Join(p.Classes, ","), p.Message,
		})
	}
	return rows, t.write, nil
}

func showVolumes(_ context.Context, _ question, c survey.Cluster) (any, func(io.Writer, bool) error, error) {
	rows := c.VolumeRows()
	t := table{header: []string{"NAMESPACE", "CLAIM", "STATE", "SIZE", "CLASS", "NODE", "PODS", "VOLUME", "POOL", "MESSAGE"}, narrow: 7}
	for _, v := range rows {
		t.rows = append(t.rows, []string{
			cmp.Or(v.Namespace, "-"), cmp.Or(v.Claim, "-"), v.State, quantity.Rough(v.Size), v.Class, cmp.Or(strings.Join(v.Nodes, ","), "-"),
			cmp.Or(strings.Join(v.Pods, ","), "-"), v.Name, cmp.Or(strings.Join(v.Pools, ","), "-"), v.Message,
		})
	}
	return rows, t.write, nil
}

func showStatus(ctx context.Context, q question, c survey.Cluster) (any, func(io.Writer, bool) error, error) {
	programs, err := programs(ctx, q)
	if err != nil {
		return nil, nil, err
	}
	if err := addAllSnapshots(ctx, q, c.Lists); err != nil {
		return nil, nil, err
	}
	if err := addLUNs(ctx, q, &c); err != nil {
		return nil, nil, err
	}
	s := c.Status(programs)
	return s, func(to io.Writer, wide bool) error { return writeStatus(to, s, wide) }, nil
}

// mostProblems is how many problems fit on a screen with the rest of the status.
const mostProblems = 12

func writeStatus(to io.Writer, s survey.Status, all bool) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\n", args...) } // an error shows at Flush
	for _, component := range survey.Components {
		if pods := s.Ready(component.Name); pods != nil {
			line("%s\t%d of %d ready", component.Many, pods.Good, pods.Of)
		}
	}
	line("nodes\t%d of %d ready", s.Nodes.Good, s.Nodes.Of)
	line("pools\t%d of %d healthy, %s of %s used", s.Pools.Good, s.Pools.Of, used(s.Used, s.Total), quantity.Rough(s.Total))
	if s.Fullest != nil {
		line("fullest pool\t%s of node %s, %s of %s used", s.Fullest.Name, s.Fullest.Node, used(s.Fullest.Used, s.Fullest.Total), quantity.Rough(s.Fullest.Total))
	}
	line("volumes\t%d of %d ready", s.Volumes.Good, s.Volumes.Of)
	if s.LUNs != nil {
		line("LUNs\t%d of %d available", s.LUNs.Available, s.LUNs.Of)
	}
	line("claims\t%d waiting for a volume", s.Waiting)
	line("orphans\t%d", s.Orphans)
	if len(s.Problems) == 0 {
		line("\nAll is well.")
		return w.Flush()
	}
	line("\n%d problems:", len(s.Problems))
	for i, p := range s.Problems {
		if i == mostProblems && !all {
			line("  and %d more: kubectl berth status -o wide lists them", len(s.Problems)-i)
			break
		}
		line("  %s", plain.Line(p))
	}
	return w.Flush()
}

// used prints how much of a total is used.
func used(n, total int64) string {
	if total == 0 {
		return "-"
	}
	return fmt.Sprintf("%d%%", int64(100*(float64(n)/float64(total))))
}
