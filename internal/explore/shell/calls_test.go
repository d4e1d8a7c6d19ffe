package shell

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/attached"
	"berth.dev/berth/internal/csi"
	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/publish/staging"
)

// kubeletDir stands for the kubelet's directory: paths of calls must be below a directory that is there. The
// product looks at it, and finds nothing below it.
const kubeletDir = "/var"

func (v *volume) stagePath() string {
	return filepath.Join(kubeletDir, "plugins", v.name, "globalmount")
}

// podPath is where a pod has the volume.
func (v *volume) podPath(uid types.UID) string {
	return filepath.Join(kubeletDir, "pods", string(uid), "volumes/kubernetes.io~csi", v.name, "mount")
}

// at returns the volume of a path, and the pod whose path it is, if it is one's.
func (m *machine) at(path string) (k *kernel, pod types.UID) {
	parts := strings.Split(strings.TrimPrefix(path, kubeletDir+"/"), "/")
	if parts[0] == "pods" {
		return m.kernels[parts[4]], types.UID(parts[1])
	}
	return m.kernels[parts[1]], ""
}

// serves returns the agent's CSI service, as internal/agent puts it together.
func (a *agent) serves(known specs) *csi.Node {
	var disks staging.Disks = attached.New(attached.Config{Boot: a.p.m.bootID(), Journal: a.kept, Machine: made{}, Mounter: mounter{p: a.p}, Wishes: known})
	if a.vault != nil {
		disks = a.vault.shelves
	}
	return csi.NewNode(a.p.w.driver, a.p.m.name, staging.New(staging.Config{
		Node: a.p.m.name, KubeletDir: kubeletDir, Wishes: known, Mounts: a.p.m.table, Locks: a.locks, Owner: paced{a.calls, a.p}, Disks: disks,
	}), nil)
}

// pods are those of the agent's node.
func (a *agent) pods(ctx context.Context) (pods []corev1.Pod, err error) {
	err = a.p.effect(ctx, toAPI, "ListPod", a.p.m.name, func() error {
		for _, o := range a.p.w.api.all(kindOf(&corev1.Pod{})) {
			if p := o.(*corev1.Pod); p.Spec.NodeName == a.p.m.name {
				pods = append(pods, *p)
			}
		}
		return nil
	})
	return pods, err
}

// exists says whether the kubelet has not unpublished a pod.
func (m *machine) exists(path string) (is bool) {
	m.w.locked(func() {
		k, uid := m.at(path)
		is = k.targets[uid]
	})
	return is
}

// specs are those of the Volumes that an agent sees.
type specs struct{ *informer }

// Spec implements staging.Wishes.
func (x specs) Spec(_ context.Context, id string) *v1alpha1.VolumeSpec {
	x.mu.Lock()
	defer x.mu.Unlock()
	if v, ok := x.shown[client.ObjectKey{Name: id}].(*v1alpha1.Volume); ok {
		return &v.Spec
	}
	return nil
}

// made are devices whose filesystem was made, and is known.
type made struct{ attached.Machine }

// Size implements attached.Machine.
func (made) Size(provision.Content) (int64, error) { return 1 << 30, nil }

// Mounted implements attached.Machine.
func (made) Mounted(provision.Content) (string, error) { return provision.Ext4, nil }

// paced lets a moment pass after Fetch, which has the volume tended, and after a change, which is known once it was
// tended: else chance would say whether the loop or the call goes on first.
type paced struct {
	staging.Owner
	p *process
}

// Fetch implements staging.Owner.
func (x paced) Fetch(ctx context.Context, id string) error {
	if err := x.Owner.Fetch(ctx, id); err != nil {
		return err
	}
	d := x.p.dice("fetched", id)
	return x.p.passes(ctx, d.upTo(time.Millisecond))
}

// Take implements staging.Owner.
func (x paced) Take(ctx context.Context, id string, use func(context.Context) error) error {
	err := x.Owner.Take(ctx, id, use)
	if x.p.isDead() {
		return errDead // its caller waits for nothing any more
	}
	var soon staging.Awaited
	if !errors.As(err, &soon) || soon.Changed() == nil {
		return err
	}
	d, changed := x.p.dice("changed", id), make(chan struct{})
	go func() {
		select {
		case <-soon.Changed():
		case <-x.p.ctx.Done():
		case <-ctx.Done():
			return
		}
		_ = x.p.passes(ctx, d.upTo(time.Millisecond))
		close(changed)
	}()
	return pacedError{soon, changed}
}

// pacedError is one of Take whose change is known a moment later.
type pacedError struct {
	staging.Awaited
	changed <-chan struct{}
}

// Changed implements staging.Awaited.
func (e pacedError) Changed() <-chan struct{} { return e.changed }

// Unwrap gives the error its class.
func (e pacedError) Unwrap() error { return e.Awaited }

// mounter mounts volumes for the agent, and takes them off.
type mounter struct {
	mount.Mounter
	p *process
}

func (x mounter) kernel(c provision.Content) (*kernel, error) {
	for _, k := range x.p.m.all() {
		if k.v.identity == c.Identity {
			return k, nil
		}
	}
	return nil, fmt.Errorf("%w: there is no device %s", provision.ErrNotFound, c.Identity)
}

// Mount implements mount.Mounter. The check of a filesystem takes long now and then.
func (x mounter) Mount(ctx context.Context, r mount.Request) error {
	k, err := x.kernel(r.Content)
	if err != nil {
		return err
	}
	if err := x.p.lingers(ctx, "Check", k.v.name); err != nil {
		return err
	}
	return x.p.effect(ctx, local, "Mount", k.v.name, func() error {
		e, err := x.p.m.opened(k.v.name)
		if err != nil {
			return err
		}
		return k.mounts(e)
	})
}

// Bind implements mount.Mounter.
func (x mounter) Bind(ctx context.Context, r mount.BindRequest) error {
	k, err := x.kernel(r.Content)
	if err != nil {
		return err
	}
	if err := x.p.lingers(ctx, "Prepare", k.v.name); err != nil {
		return err
	}
	return x.p.effect(ctx, local, "Bind", k.v.name, func() error {
		if r.Source != "" {
			return k.bind(r.Target)
		}
		e, err := x.p.m.opened(k.v.name)
		if err != nil {
			return err
		}
		return k.gives(r.Target, e)
	})
}

// Unmount implements mount.Mounter.
func (x mounter) Unmount(ctx context.Context, path string) error {
	return x.p.effect(ctx, local, "Unmount", path, func() error {
		x.p.m.unmounts(path)
		return nil
	})
}

// Grow implements mount.Mounter: no disk grows.
func (mounter) Grow(context.Context, mount.GrowRequest) error { return nil }

// access is how a claim is used by one node at a time.
var access = &csispec.VolumeCapability{
	AccessMode: &csispec.VolumeCapability_AccessMode{Mode: csispec.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
	AccessType: &csispec.VolumeCapability_Mount{Mount: &csispec.VolumeCapability_MountVolume{FsType: "ext4"}},
}

// together is how a claim is used by several nodes at once.
var together = &csispec.VolumeCapability{
	AccessMode: &csispec.VolumeCapability_AccessMode{Mode: csispec.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER},
	AccessType: &csispec.VolumeCapability_Block{Block: &csispec.VolumeCapability_BlockVolume{}},
}

func (p *plan) access() *csispec.VolumeCapability {
	if p.together {
		return together
	}
	return access
}

func (a *agent) stage(ctx context.Context, v *volume) error {
	_, err := a.csi.NodeStageVolume(ctx, &csispec.NodeStageVolumeRequest{VolumeId: v.name, StagingTargetPath: v.stagePath(), VolumeCapability: a.p.w.plan.access()})
	return err
}

func (a *agent) publish(ctx context.Context, v *volume, uid types.UID) error {
	_, err := a.csi.NodePublishVolume(ctx, &csispec.NodePublishVolumeRequest{
		VolumeId: v.name, StagingTargetPath: v.stagePath(), TargetPath: v.podPath(uid), VolumeCapability: a.p.w.plan.access(),
	})
	return err
}

func (a *agent) unpublish(ctx context.Context, v *volume, uid types.UID) error {
	_, err := a.csi.NodeUnpublishVolume(ctx, &csispec.NodeUnpublishVolumeRequest{VolumeId: v.name, TargetPath: v.podPath(uid)})
	return err
}

func (a *agent) unstage(ctx context.Context, v *volume) error {
	_, err := a.csi.NodeUnstageVolume(ctx, &csispec.NodeUnstageVolumeRequest{VolumeId: v.name, StagingTargetPath: v.stagePath()})
	return err
}
