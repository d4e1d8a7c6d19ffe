package main

import (
	"context"

	"github.com/spf13/cobra"

	"berth.dev/berth/lab/internal/cluster"
	"berth.dev/berth/lab/internal/network"
)

// faultCommands returns the commands that disturb a node, and those that undo it.
func faultCommands(a *app) []*cobra.Command {
	return []*cobra.Command{
		pauseCommand(a),
		onNode(a, "resume", "Let a paused node go on", cluster.Node.Resume),
		onParts{
			use: "cut", short: "Disconnect a node from the network, silently",
			long: `Cut disconnects a node from the network: from all of it, as a pulled cable does, or only
from some parts. Packets are lost silently, and connections stay as they are on both ends.

  api     the control plane, both ways: kubectl exec and logs do not reach the node, either
  peers   all other nodes and their pods
  san     the target of lab san`,
			example: "  lab cut node1\n  lab cut node1 --from api,san",
			flag:    "from", usage: "parts to cut the node from: api, peers, san; all of the network if not given",
			do: cluster.Node.Cut,
		}.command(a),
		onParts{
			use: "heal", short: "Connect a node to the network again",
			long:    "Heal undoes cut and netem: all of it, or only the cut from some parts.",
			example: "  lab heal node1\n  lab heal node1 --from san",
			flag:    "from", usage: "parts to connect the node to: api, peers, san; if not given, all faults of its network end",
			do: cluster.Node.Heal,
		}.command(a),
		netemCommand(a),
	}
}

func pauseCommand(a *app) *cobra.Command {
	var frozen bool
	cmd := onNode(a, "pause", "Stop a node's clockwork; it does not notice", func(n cluster.Node, ctx context.Context) error {
		return n.Pause(ctx, frozen)
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
	do                        func(cluster.Node, context.Context, []network.Part) error
}

// command returns the command that o describes.
func (o onParts) command(a *app) *cobra.Command {
	var names []string
	cmd := onNode(a, o.use, o.short, func(n cluster.Node, ctx context.Context) error {
		var parts []network.Part
		for _, name := range names {
			parts = append(parts, network.Part(name))
		}
		return o.do(n, ctx, parts)
	})
	cmd.Long, cmd.Example = o.long, o.example
	cmd.Flags().StringSliceVar(&names, o.flag, nil, o.usage)
	return cmd
}

func netemCommand(a *app) *cobra.Command {
	var link network.Link
	cmd := onNode(a, "netem", "Delay or lose packets that a node sends", func(n cluster.Node, ctx context.Context) error {
		return n.Shape(ctx, link)
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
