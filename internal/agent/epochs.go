package agent

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/journal"
	"berth.dev/berth/internal/agent/owner"
	"berth.dev/berth/internal/guard"
	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/publish/kubeletdir"
)

// node is what an agent of volumes with epochs has of its machine, whatever their replicas are.
type node struct {
	boot    string
	journal journal.Files
	guard   owner.Guard
	mounter mount.Mounter
	holding func(c provision.Content) (guard.Holding, error)
	cover   func(path string) error
}

// epochs is an Owner with its loop and its journal, and what the agent's watch tells it.
type epochs struct {
	*front
	owner *owner.Owner
	loop  *owner.Loop
	// tainted says whether an administrator has declared this node dead; nil is not known yet.
	tainted atomic.Pointer[bool]
	kept    journal.Journal
	end     context.CancelFunc
}

// newEpochs makes the Owner of volumes whose replicas are of a medium. What it begins in the background ends with
// ctx, or with end.
func (f *front) newEpochs(ctx context.Context, n node, medium owner.Medium) (*epochs, error) {
	o := f.options
	e := &epochs{front: f, kept: journal.Journal{Files: n.journal}}
	live, err := f.live()
	if err != nil {
		return nil, err
	}
	peers := o.Peers
	if peers == nil {
		peers = noPeers{}
	}
	kubelet := kubeletdir.New(o.KubeletDir)
	log := o.Log.WithName("owner")
	ctx, e.end = context.WithCancel(ctx)
	e.loop = owner.NewLoop(ctx, o.Clock, log)
	e.owner = owner.New(owner.Config{
		Node: o.Node, Boot: n.boot,
		World: &owner.Node{
			Journal: e.kept, Peers: peers, Live: o.Driver.Live(live), Status: live,
			Guard: n.guard, Holding: n.holding, MountTable: o.Mounts, Mounter: n.mounter, Cover: n.cover,
			ShutDownAt: func() ([]string, error) { return o.ShutDowns(o.KubeletDir) },
			Kubelet:    kubelet, Pods: podsOf{o.Node, live}.All, Exists: kubelet.Has,
			OutOfService: e.outOfService, Clock: o.Clock,
			Warn: func(volume, warning string) { log.Info(warning, "volume", volume) },
			Uncovered: func(err error) {
				log.Error(err, "a volume was taken off a pod's path, which was not covered: end the pod before its containers begin anew")
			},
		},
		Locks: f.locks, Medium: medium, Rules: ownership.NodeRules(),
		Poke: e.loop.Poke, Background: e.loop.Background, Log: log,
	})
	return e, nil
}

// knows says whether the node keeps knowledge of a volume's epochs.
func (e *epochs) knows(id string) (bool, error) {
	_, found, err := e.kept.Load(id)
	return found, err
}

// noPeers answers for no node: silence is no answer, and the rules wait for those that they need.
type noPeers struct{}

// Ask implements owner.Peers.
func (noPeers) Ask(context.Context, string, []string) []ownership.Peer { return nil }

// tend runs the upkeep of the volumes until ctx ends.
func (e *epochs) tend(ctx context.Context) error {
	stop := context.AfterFunc(ctx, e.end)
	defer stop()
	return e.loop.Run(e.owner)
}

// outOfService says whether an administrator has declared this node dead, by the watch of its Node. The
// guard is asked every second, and with it this; a read of each time would be a request of each node.
// A node that learns of its taint too late is shut out by the reservation of a shared disk; with copies it writes
// into its own, from which no other node takes what came after the fence.
func (e *epochs) outOfService(context.Context) (bool, error) {
	if is := e.tainted.Load(); is != nil {
		return *is, nil
	}
	return false, fmt.Errorf("%w: the Node of this node was not read yet", provision.ErrUnavailable)
}

// seen has a volume tended that concerns this node: its Volume names the node, the record counts a replica here,
// or the node keeps knowledge of it.
func (e *epochs) seen(object any) {
	if gone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	v, ok := object.(*v1alpha1.Volume)
	if !ok || !e.options.Driver.Owns(v) || v.Spec.Replication.Kind == "" {
		return
	}
	known, err := e.knows(v.Name)
	here := func(r v1alpha1.OwnedReplica) bool { return r.Node == e.options.Node }
	if r := v.Status.Ownership; known || err != nil || v.Wish(e.options.Node) != nil ||
		r != nil && (r.Primary.Node == e.options.Node || slices.ContainsFunc(r.Replicas, here)) {
		e.loop.Poke(v.Name, 0)
	}
}

// seenNode notes the taint of a node that is out of service. A Node that was deleted has the last word of
// before.
func (e *epochs) seenNode(object any) {
	if n, ok := object.(*corev1.Node); ok {
		out := slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService })
		e.tainted.Store(&out)
	}
}
