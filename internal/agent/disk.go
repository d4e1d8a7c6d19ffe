package agent

import (
	"context"
	"fmt"
	"path/filepath"

	"k8s.io/apimachinery/pkg/util/uuid"

	"berth.dev/berth/internal/agent/attached"
	"berth.dev/berth/internal/agent/journal"
	"berth.dev/berth/internal/agent/orders"
	"berth.dev/berth/internal/agent/owner"
	"berth.dev/berth/internal/agent/released"
	"berth.dev/berth/internal/guard"
	"berth.dev/berth/internal/health"
	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/peer"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/shared"
	"berth.dev/berth/internal/provision/shared/ordered"
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
	// Disks returns those of all provisioners of this node. The book has the node's orders to the controllers, for
	// provisioners whose disks those attach.
	Disks func(book ordered.Book) shared.Disks
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
	*epochs
	staging *staging.Service
	guard   owner.Guard
	disks   shared.Disks
	eraser  released.Machine
}

// NewDisk puts the parts together. What the Owner begins in the background ends with ctx, or with Run.
func NewDisk(ctx context.Context, o Options, d SharedDisks) (*DiskAgent, error) {
	if d.Guard == nil {
		return nil, fmt.Errorf("%w: the agent of driver %s needs the guard of its node", provision.ErrInvalid, o.Driver.Name)
	}
	f := newFront(o)
	live, err := f.live()
	if err != nil {
		return nil, err
	}
	disks := d.Disks(orders.Book{
		Node: o.Node, Live: live, Status: live, Clock: o.Clock, FreshID: func() string { return string(uuid.NewUUID()) },
	})
	e, err := f.newEpochs(ctx, node{
		boot: d.Boot, journal: d.Journal, guard: d.Guard, mounter: d.Mounter, holding: d.Holding, cover: d.Cover,
	}, owner.Attachments(disks, owner.Locate))
	if err != nil {
		return nil, err
	}
	a := &DiskAgent{epochs: e, guard: d.Guard, disks: disks, eraser: d.Eraser}
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
