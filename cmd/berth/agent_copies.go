package main

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"

	"berth.dev/berth/internal/agent"
	"berth.dev/berth/internal/agent/attached"
	"berth.dev/berth/internal/agent/journal"
	contract "berth.dev/berth/internal/guard"
	"berth.dev/berth/internal/guard/keep"
	"berth.dev/berth/internal/guard/word"
	"berth.dev/berth/internal/mount/linux"
	"berth.dev/berth/internal/provision"
)

// runReplicated runs an agent of pools that serves volumes with copies on several nodes, too.
func (f *agentFlags) runReplicated(ctx context.Context, o agent.Options, asks *agentPeers) error {
	boot, err := keep.Boot()
	if err != nil {
		return err
	}
	o.Peers = asks.client
	c := agent.Copies{
		Boot: boot, Journal: agent.JournalDir(f.kubeletDir, o.Driver.Name), Guard: word.Client{Socket: f.guardSocket},
		Holding: holding, Cover: linux.Cover, Identity: asks.server.Identity, Dial: asks.dial, Listener: asks.sortStreams(ctx),
	}
	a, err := agent.NewReplicated(ctx, o, c)
	if err != nil {
		return err
	}
	asks.server.Copies = a.Copies()
	return asks.beside(ctx, a.Run)
}

// holding is how the kernel names a volume to the guard. The guard has to know the volume before it is mounted, and
// the numbers of a tree show only then.
func holding(c provision.Content) (contract.Holding, error) {
	if c.IsTree() {
		return contract.Holding{}, fmt.Errorf("%w: volumes with copies must be block devices: the guard cannot watch over a filesystem of %s before it is mounted",
			provision.ErrUnsupported, c.Tree)
	}
	return attached.Holding(c)
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
