package agent

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/internal/agent/attached"
	"berth.dev/berth/internal/agent/journal"
	"berth.dev/berth/internal/agent/owner"
	"berth.dev/berth/internal/agent/released"
	"berth.dev/berth/internal/guard"
	"berth.dev/berth/internal/health"
	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/peer"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/shared"
	"berth.dev/berth/internal/publish/staging"
)

// JournalDir is where an agent keeps what it must know of volumes with epochs, in the driver's own
// directory below the kubelet's: it outlives the agent, and a boot.
func JournalDir(kubeletDir, driver string) journal.Dir {
	return journal.Dir(filepath.Join(kubeletDir, "plugins", driver, "epochs"))
}

// SharedDisks is what an agent of shared disks works with besides its Options.
type SharedDisks struct {
	// Boot is the id of the machine's present boot.
	Boot string
	// Journal outlives the agent.
	Journal journal.Files
	// Disks are those of all provisioners of this node.
	Disks shared.Disks
	// Guard of the node: no epoch begins without it.
	Guard owner.Guard
	// Machine has the devices, Mounter mounts them, Mkfs makes filesystems, and Holding is how the kernel
	// names a device to the guard. Cover covers a pod's path from which the agent took a volume by itself.
	Machine attached.Machine
	Mounter mount.Mounter
	Mkfs    attached.Mkfs
	Holding func(c provision.Content) (guard.Holding, error)
	Cover   func(path string) error
	// Eraser has the devices that are wiped.
	Eraser released.Machine
}

// DiskAgent is the process of the driver of shared disks, set up and not started yet. It has no pools: no
// report, no capacity and no inline volumes. What a node says of itself, the agent of pools says.
type DiskAgent struct {
	*front
	owner *owner.Owner
	loop  *owner.Loop
	// tainted says whether an administrator has declared this node dead; nil is not known yet.
	tainted atomic.Pointer[bool]
	staging *staging.Service
	kept    journal.Journal
	guard   owner.Guard
	disks   shared.Disks
	eraser  released.Machine
	end     context.CancelFunc
}

// NewDisk puts the parts together. What the Owner begins in the background ends with ctx, or with Run.
func NewDisk(ctx context.Context, o Options, d SharedDisks) (*DiskAgent, error) {
	if d.Guard == nil {
		return nil, fmt.Errorf("%w: the agent of driver %s needs the guard of its node", provision.ErrInvalid, o.Driver.Name)
	}
	a := &DiskAgent{front: newFront(o), guard: d.Guard, kept: journal.Journal{Files: d.Journal}, disks: d.Disks, eraser: d.Eraser}
	scheme, api, err := a.api()
	if err != nil {
		return nil, err
	}
	live, err := client.New(api, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("setting up the API client: %w", err)
	}
	peers := o.Peers
	if peers == nil {
		peers = noPeers{}
	}
	log := o.Log.WithName("owner")
	ctx, a.end = context.WithCancel(ctx)
	a.loop = owner.NewLoop(ctx, o.Clock, log)
	a.owner = owner.New(owner.Config{
		Node: o.Node, Boot: d.Boot,
		World: &owner.Node{
			Journal: a.kept, Peers: peers, Live: o.Driver.Live(live), Status: live,
			Guard: d.Guard, Holding: d.Holding, MountTable: o.Mounts, Mounter: d.Mounter, Cover: d.Cover,
			OutOfService: a.outOfService, Clock: o.Clock,
			Warn: func(volume, warning string) { log.Info(warning, "volume", volume) },
			Uncovered: func(err error) {
				log.Error(err, "a volume was taken off a pod's path, which was not covered: end the pod before its containers begin anew")
			},
		},
		Locks: a.locks, Medium: owner.Attachments(d.Disks, owner.Locate), Rules: ownership.NodeRules(),
		Poke: a.loop.Poke, Background: a.loop.Background, Log: log,
	})
	a.staging = staging.New(staging.Config{
		Node: o.Node, KubeletDir: o.KubeletDir, Wishes: a.wishes, Mounts: o.Mounts, Locks: a.locks,
		Disks: attached.New(attached.Config{
			Boot: d.Boot, Journal: a.kept, Machine: d.Machine, Mounter: d.Mounter, Mkfs: d.Mkfs, Wishes: a.wishes,
		}),
		Owner: owner.ByKind{
			Wishes: a.wishes, Default: o.Driver.Kind, OneCopy: staging.OneCopy{Locks: a.locks}, Epochs: a.owner,
			Kept: a.knows,
		},
	})
	return a, nil
}

// knows says whether the node keeps knowledge of a volume's epochs.
func (a *DiskAgent) knows(id string) (bool, error) {
	_, found, err := a.kept.Load(id)
	return found, err
}

// noPeers answers for no node: silence is no answer, and the rules wait for those that they need.
type noPeers struct{}

// Ask implements owner.Peers.
func (noPeers) Ask(context.Context, string, []string) []ownership.Peer { return nil }

// Copies answers the nodes and controllers that ask this node. It may be asked before Run, and after.
func (a *DiskAgent) Copies() peer.Copies { return a.owner }

// Run serves until ctx ends or the local half fails. It runs once.
func (a *DiskAgent) Run(ctx context.Context) error {
	defer a.end()
	return a.serve(ctx, parts{
		volumes: a.staging,
		ready: health.Checks{"guard": health.Of(func() error {
			ctx, cancel := context.WithTimeout(ctx, probeTimeout)
			defer cancel()
			_, err := a.guard.Status(ctx)
			return err
		})},
		cluster: a.runCluster,
		others:  []func(ctx context.Context) error{a.tend},
	})
}

// tend runs the upkeep of the volumes until ctx ends.
func (a *DiskAgent) tend(ctx context.Context) error {
	stop := context.AfterFunc(ctx, a.end)
	defer stop()
	return a.loop.Run(a.owner)
}

// outOfService says whether an administrator has declared this node dead, by the watch of its Node. The
// guard is asked every second, and with it this; a read of each time would be a request of each node.
// On a shared disk the reservation shuts a node out that learns of its taint too late.
func (a *DiskAgent) outOfService(context.Context) (bool, error) {
	if is := a.tainted.Load(); is != nil {
		return *is, nil
	}
	return false, fmt.Errorf("%w: the Node of this node was not read yet", provision.ErrUnavailable)
}
