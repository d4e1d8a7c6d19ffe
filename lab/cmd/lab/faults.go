package main

import (
	"context"

	"github.com/spf13/cobra"

	"berth.dev/berth/lab/internal/cluster"
	"berth.dev/berth/lab/internal/network"
)

// faults returns the commands that disturb a node, and those that undo it.
func (a *app) faults() []*cobra.Command {
	return []*cobra.Command{
		a.pause(),
		a.onNode("resume", "Let a paused node go on", (*cluster.Cluster).Resume),
		a.onParts(onParts{
			use: "cut", short: "Disconnect a node from the network, silently",
			long: `Cut disconnects a node from the network: from all of it, as a pulled cable does, or only
from some parts. Packets are lost silently, and connections stay as they are on both ends.

  api     the control plane, both ways: kubectl exec and logs do not reach the node, either
  peers   all other nodes and their pods
  san     the target of lab san`,
			example: "  lab cut node1\n  lab cut node1 --from api,san",
			flag:    "from", usage: "parts to cut the node from: api, peers, san; all of the network if not given",
			do: (*cluster.Cluster).Cut,
		}),
		a.onParts(onParts{
			use: "heal", short: "Connect a node to the network again",
			long:    "Heal undoes cut and netem: all of it, or only the cut from some parts.",
			example: "  lab heal node1\n  lab heal node1 --from san",
			flag:    "from", usage: "parts to connect the node to: api, peers, san; if not given, all faults of its network end",
			do: (*cluster.Cluster).Heal,
		}),
		a.netem(),
	}
}

func (a *app) pause() *cobra.Command {
	var frozen bool
	cmd := a.onNode("pause", "Stop a node's clockwork; it does not notice", func(c *cluster.Cluster, ctx context.Context, node string) error {
		return c.Pause(ctx, node, frozen)
	})
	cmd.Long = `Pause stops a node; lab resume lets it go on. It does not notice, except that time has jumped.

With --freeze-clock it cannot notice even that: all its clocks stop, too, CLOCK_BOOTTIME among them. After
resume they go on from where they were, and its time of day stays behind. Native nodes have the clocks
of this machine, so theirs cannot stop.`
	cmd.Flags().BoolVar(&frozen, "freeze-clock", false, "stop the node's clocks, too")
	return cmd
}

// onParts describes a command for parts of the network of a node.
type onParts struct {
	use, short, long, example string
	flag, usage               string
	do                        func(*cluster.Cluster, context.Context, string, []network.Part) error
}

func (a *app) onParts(o onParts) *cobra.Command {
	var names []string
	cmd := a.onNode(o.use, o.short, func(c *cluster.Cluster, ctx context.Context, node string) error {
		var parts []network.Part
		for _, n := range names {
			parts = append(parts, network.Part(n))
		}
		return o.do(c, ctx, node, parts)
	})
	cmd.Long, cmd.Example = o.long, o.example
	cmd.Flags().StringSliceVar(&names, o.flag, nil, o.usage)
	return cmd
}

func (a *app) netem() *cobra.Command {
	var link network.Link
	cmd := a.onNode("netem", "Delay or lose packets that a node sends", func(c *cluster.Cluster, ctx context.Context, node string) error {
		return c.Shape(ctx, node, link)
	})
	cmd.Long = `Netem delays or loses the packets that a node sends to all others; a delay counts once in each round
trip. It replaces what an earlier netem set. It ends with lab heal, with a call without flags,
and when the node restarts. The node's kernel must have netem: guests have it.`
	cmd.Example = "  lab netem node1 --delay 50ms --jitter 10ms\n  lab netem node1 --loss 5\n  lab netem node1"
	cmd.Flags().DurationVar(&link.Delay, "delay", 0, "delay of each packet")
	cmd.Flags().DurationVar(&link.Jitter, "jitter", 0, "how far the delay varies, up and down")
	cmd.Flags().Float64Var(&link.Loss, "loss", 0, "lost packets, in percent")
	return cmd
}
