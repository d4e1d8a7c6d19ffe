package owner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/journal"
	"berth.dev/berth/internal/agent/orphans"
	"berth.dev/berth/internal/guard"
	"berth.dev/berth/internal/guard/keep"
	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/podlife"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/publish/kubeletdir"
	"berth.dev/berth/internal/publish/staging"
)

// Peers asks other nodes what they know of a volume, and waits for none of them for long.
type Peers interface {
	Ask(ctx context.Context, volume string, nodes []string) []ownership.Peer
}

// Guard is the guard of this node; word.Client is one.
type Guard interface {
	Open(ctx context.Context, e guard.Epoch) (warning string, err error)
	Close(ctx context.Context, e guard.Epoch) error
	Closed(ctx context.Context) error
	Status(ctx context.Context) (keep.Status, error)
}

// Node is the World of a real node.
type Node struct {
	journal.Journal
	Peers
	// Live reads the API server, and Status writes the status of objects there.
	Live   client.Reader
	Status client.StatusClient
	// Guard of the node. Holding is how the kernel names a device to it.
	Guard   Guard
	Holding func(content provision.Content) (guard.Holding, error)
	// MountTable has the mounts, Mounter takes them off, and Cover covers the path of one that was a pod's. ShutDownAt are the
	// paths of those whose filesystem has shut itself down.
	MountTable staging.MountTable
	ShutDownAt func() ([]string, error)
	Mounter    mount.Mounter
	Cover      func(path string) error
	// Kubelet is the kubelet's directory, and Pods are those that are bound to the node, as the API server has them.
	// Exists says whether the kubelet has a path.
	Kubelet kubeletdir.Dir
	Pods    func(ctx context.Context) ([]corev1.Pod, error)
	Exists  func(path string) bool
	// OutOfService says whether an administrator has declared this node dead.
	OutOfService func(ctx context.Context) (bool, error)
	Clock        clock.PassiveClock
	// Warn is told what the guard says about an epoch that begins, and Uncovered of a path that could not be
	// covered.
	Warn      func(volume, warning string)
	Uncovered func(err error)
}

var _ World = (*Node)(nil)

// Now implements World.
func (n *Node) Now() time.Time { return n.Clock.Now() }

// FreshID implements World.
func (n *Node) FreshID() string { return string(uuid.NewUUID()) }

// Mounts implements World. A device whose identity no device of the kernel has is mounted nowhere.
func (n *Node) Mounts(content provision.Content) ([]string, error) {
	paths, err := n.MountTable(provision.Volume{Content: content})
	if errors.Is(err, provision.ErrNotFound) && content.Identity != "" && !content.Identity.NeedsOpening() {
		return nil, nil
	}
	return paths, err
}

// ShutDowns implements World.
func (n *Node) ShutDowns() []string {
	paths, err := n.ShutDownAt()
	if err != nil {
		return nil
	}
	return paths
}

// Unmount implements World. No kubelet has asked for it, so the pod may still run. A path that cannot be covered
// keeps no other node from the volume.
func (n *Node) Unmount(ctx context.Context, path string) error {
	if err := n.Mounter.Unmount(ctx, path); err != nil {
		return err
	}
	if err := n.Cover(path); err != nil {
		n.Uncovered(err)
	}
	return nil
}

// There implements World.
func (n *Node) There(paths []string) []string {
	return slices.DeleteFunc(slices.Clone(paths), func(path string) bool { return !n.Exists(path) })
}

// Begun implements World.
func (n *Node) Begun(ctx context.Context, paths []string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, orphans.RequestTimeout)
	defer cancel()
	pods, err := n.Pods(ctx)
	if err != nil {
		return nil, err
	}
	waits := map[string]bool{}
	for i := range pods {
		waits[string(pods[i].UID)] = !podlife.Begun(&pods[i])
	}
	return slices.DeleteFunc(slices.Clone(paths), func(path string) bool { return waits[n.Kubelet.PodOf(path)] }), nil
}

// Uncover implements World.
func (n *Node) Uncover(ctx context.Context, path string) error { return n.Mounter.Unmount(ctx, path) }

// Read implements World.
func (n *Node) Read(ctx context.Context, volume string) (*v1alpha1.Volume, error) {
	ctx, cancel := context.WithTimeout(ctx, orphans.RequestTimeout)
	defer cancel()
	v := &v1alpha1.Volume{}
	return v, n.Live.Get(ctx, client.ObjectKey{Name: volume}, v)
}

// Replace implements World. The resourceVersion of v makes it a compare-and-swap.
func (n *Node) Replace(ctx context.Context, v *v1alpha1.Volume) error {
	ctx, cancel := context.WithTimeout(ctx, orphans.RequestTimeout)
	defer cancel()
	if v.ResourceVersion == "" {
		return fmt.Errorf("%w: the record of volume %s was not read before it is written", provision.ErrInvalid, v.Name)
	}
	return n.Status.Status().Update(ctx, v.DeepCopy())
}

// Standing implements World.
func (n *Node) Standing(ctx context.Context) (Standing, error) {
	status, err := n.Guard.Status(ctx)
	if err != nil {
		return Standing{}, err
	}
	out, err := n.OutOfService(ctx)
	if err != nil {
		return Standing{}, fmt.Errorf("reading the taints of this node: %w", err)
	}
	return Standing{SinceRenewal: status.SinceRenewal, Fenced: status.Fenced, OutOfService: out}, nil
}

// OpenEpoch implements World.
func (n *Node) OpenEpoch(ctx context.Context, volume string, e lineage.Epoch, content provision.Content, reserved bool) error {
	holding, err := n.Holding(content)
	if err != nil {
		return err
	}
	warning, err := n.Guard.Open(ctx, guard.Epoch{Volume: volume, Epoch: e, Holding: holding, Reserved: reserved})
	if warning != "" {
		n.Warn(volume, warning)
	}
	return err
}

// CloseEpoch implements World.
func (n *Node) CloseEpoch(ctx context.Context, volume string, e lineage.Epoch) error {
	err := n.Guard.Close(ctx, guard.Epoch{Volume: volume, Epoch: e})
	var refused *keep.RefusedError
	if errors.As(err, &refused) && refused.Reason == ownership.StillHeld {
		return fmt.Errorf("%w: %w", provision.ErrInUse, err)
	}
	return err
}

// AllClosed implements World.
func (n *Node) AllClosed(ctx context.Context) error { return n.Guard.Closed(ctx) }
