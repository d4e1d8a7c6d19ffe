package main

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"

	"berth.dev/berth/internal/agent"
	"berth.dev/berth/internal/agent/journal"
	"berth.dev/berth/internal/agent/pooled"
	"berth.dev/berth/internal/guard/keep"
	"berth.dev/berth/internal/guard/word"
	"berth.dev/berth/internal/mount/linux"
)

// runReplicated runs an agent of pools that serves volumes with copies on several nodes, too.
func (f *agentFlags) runReplicated(ctx context.Context, o agent.Options, asks *agentPeers) error {
	boot, err := keep.Boot()
	if err != nil {
		return err
	}
	pace, err := pacing("--copies-rate", f.copiesRate)
	if err != nil {
		return err
	}
	o.Peers = asks.client
	c := agent.Copies{
		Boot: boot, Journal: agent.JournalDir(f.kubeletDir, o.Driver.Name), Guard: word.Client{Socket: f.guardSocket},
		Holding: pooled.Holding, Cover: linux.Cover, Identity: asks.server.Identity, Dial: asks.dial, Listener: asks.sortStreams(ctx), Pace: pace,
	}
	a, err := agent.NewReplicated(ctx, o, c)
	if err != nil {
		return err
	}
	asks.server.Copies = a.Copies()
	return asks.beside(ctx, a.Run)
}

// speaksForNone says whether an agent that serves no volumes with epochs may tell the guard that all are closed. It
// may not where an earlier agent of the node has kept some: only one with --copies knows how they stand.
func speaksForNone(kept journal.Journal) bool {
	ids, err := kept.Volumes()
	switch {
	case err != nil:
		ctrl.Log.WithName("guard").Error(err, "the guard gets no word from this agent")
	case len(ids) > 0:
		ctrl.Log.WithName("guard").Info("this node keeps epochs of volumes with copies on several nodes, which an agent without --copies does not serve: "+
			"the guard gets no word from it", "volumes", ids)
	}
	return err == nil && len(ids) == 0
}
