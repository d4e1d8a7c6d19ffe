package inline

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/sets"
	clocktesting "k8s.io/utils/clock/testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/kubeletdir"
	"berth.dev/berth/internal/keyed"
	"berth.dev/berth/internal/mount"
	mountmemory "berth.dev/berth/internal/mount/memory"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/memory"
)

const (
	mib  = int64(1 << 20)
	gib  = int64(1 << 30)
	uid  = "0f3c1c9e-1d2b-4c3d-8e4f-5a6b7c8d9e0f"
	name = "scratch"
	h    = "csi-0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	id   = "inline-0123456789abcdef0123456789abcdef01234567"
)

var (
	vg0   = provision.PoolRef{Type: "LVM", Name: "vg0"}
	vg1   = provision.PoolRef{Type: "LVM", Name: "vg1"}
	owner = provision.Inline{PodUID: uid, Name: name}
)

// node is a node with a kubelet and two pools, of 2 GiB and of 1 GiB.
type node struct {
	*Service
	*Sweeper
	t      *testing.T
	dir    string // the kubelet's
	disks  *memory.Disks
	pool   *memory.Provisioner
	mounts *mountmemory.Mounter
	marks  MarkDir
	clock  *clocktesting.FakePassiveClock
	class  *v1alpha1.PoolClass
	// What the API server says, and fails with.
	here sets.Set[string]
	err  error
	// asked counts the questions to the API server.
	asked int
	crash *memory.Crash
}

func newNode(t *testing.T) *node {
	t.Helper()
	dir := t.TempDir()
	n := &node{
		t: t, dir: dir, marks: MarkDir(filepath.Join(dir, "plugins/marks")), crash: &memory.Crash{},
		disks: memory.NewDisks(memory.PoolConfig{PoolRef: vg0, Total: 2 * gib}, memory.PoolConfig{PoolRef: vg1, Total: gib}),
		clock: clocktesting.NewFakePassiveClock(time.Unix(1000000, 0)), here: sets.New(uid),
		class: &v1alpha1.PoolClass{Spec: v1alpha1.PoolClassSpec{
			Provisioner: v1alpha1.ProvisionerLVM, LVM: &v1alpha1.LVMPools{VolumeGroups: []string{"vg0", "vg1"}},
			InlineVolumes: &v1alpha1.InlineVolumes{Namespaces: []string{"kitchen", "shop"}}}},
	}
	n.mounts = mountmemory.New(n.disks)
	n.restart()
	n.kubeletMakes()
	return n
}

// restart forgets everything that is in the process's memory.
func (n *node) restart() {
	n.pool = memory.New(n.disks, n.crash)
	n.Service = New(Config{
		Kubelet: kubeletdir.New(n.dir), Disks: crashing{n.pool, n.mounts, n.crash}, Offers: n, Marks: crashingMarks{n.marks, n.crash},
		Mounts: func(v provision.Volume) ([]string, error) { return n.mounts.Mounts(v.Device), nil },
		Locks:  &keyed.Locks[string]{},
	})
	n.Sweeper = NewSweeper(n.Service, n, n.clock, logr.Discard())
}

// reboot is a restart of the machine: nothing is mounted any more.
func (n *node) reboot() {
	n.t.Helper()
	if err := n.mounts.Unmount(context.WithoutCancel(n.t.Context()), n.target()); err != nil {
		n.t.Fatal(err)
	}
	n.restart()
}

// Class implements Offers.
func (n *node) Class(context.Context, string) (*v1alpha1.PoolClass, map[string]string, error) {
	if n.class == nil {
		return nil, nil, provision.ErrUnavailable
	}
	return n.class, nil, nil
}

// Pools implements Offers.
func (n *node) Pools() []provision.Pool {
	pools, err := memory.New(n.disks, nil).Report(n.t.Context())
	if err != nil {
		n.t.Fatal(err)
	}
	return pools
}

// Here implements Pods.
func (n *node) Here(context.Context) (sets.Set[string], error) {
	n.asked++
	return n.here, n.err
}

func (n *node) volumeDir() string {
	return filepath.Join(n.dir, "pods", uid, "volumes/kubernetes.io~csi", name)
}

func (n *node) target() string { return filepath.Join(n.volumeDir(), "mount") }

// kubeletMakes what the kubelet makes before it publishes a volume.
func (n *node) kubeletMakes() {
	if err := os.MkdirAll(n.volumeDir(), 0o750); err != nil {
		n.t.Fatal(err)
	}
}

// kubeletForgets the pod, as it does once all is given back, or finds nothing
// that it could give back.
func (n *node) kubeletForgets() {
	if err := os.RemoveAll(filepath.Join(n.dir, "pods", uid)); err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) request() PublishRequest {
	return PublishRequest{
		Handle: h, Target: n.target(), PodUID: uid, PodNamespace: "shop", PodName: "web-0",
		Class: "fast", Size: 512 * mib, Filesystem: provision.Ext4,
	}
}

func (n *node) publish() {
	n.t.Helper()
	if err := n.Publish(n.t.Context(), n.request()); err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) sweep() {
	n.t.Helper()
	n.clock.SetTime(n.clock.Now().Add(askInterval))
	if err := n.Sweep(n.t.Context(), n.Pools()); err != nil {
		n.t.Fatal(err)
	}
}

// record is what the node has of the volume; nil if nothing.
func (n *node) record() *provision.Volume {
	for _, p := range n.Pools() {
		for _, v := range p.Volumes {
			if v.ID == id {
				return &v
			}
		}
	}
	return nil
}

// mounted says whether the pod has the volume.
func (n *node) mounted() bool {
	r := n.record()
	return r != nil && len(n.mounts.Mounts(r.Device)) == 1
}

// left is what there is of the volume on the node.
func (n *node) left() string {
	n.t.Helper()
	marks, err := n.marks.List()
	if err != nil {
		n.t.Fatal(err)
	}
	_, err = os.Lstat(n.target())
	return fmt.Sprintf("data %v, marks %v, target %v", n.record() != nil, marks, err == nil)
}

const nothing = "data false, marks [], target false"

// crashing are disks whose mounts a crash may interrupt.
type crashing struct {
	*memory.Provisioner
	mounts *mountmemory.Mounter
	crash  *memory.Crash
}

var _ Disks = crashing{}

func (c crashing) Mount(ctx context.Context, r mount.Request) error {
	return c.crash.Around("Mount", func() error { return c.mounts.Mount(ctx, r) })
}

func (c crashing) Unmount(ctx context.Context, target string) error {
	return c.crash.Around("Unmount", func() error { return c.mounts.Unmount(ctx, target) })
}

func (c crashing) Bind(ctx context.Context, r mount.BindRequest) error { return c.mounts.Bind(ctx, r) }
func (c crashing) Grow(ctx context.Context, r mount.GrowRequest) error { return c.mounts.Grow(ctx, r) }

func (c crashing) Stats(ctx context.Context, path string) (mount.Stats, error) {
	return c.mounts.Stats(ctx, path)
}

// crashingMarks are marks whose change a crash may interrupt.
type crashingMarks struct {
	MarkDir
	crash *memory.Crash
}

func (c crashingMarks) Set(m Mark) error {
	return c.crash.Around("Set mark", func() error { return c.MarkDir.Set(m) })
}

func (c crashingMarks) Remove(m Mark) error {
	return c.crash.Around("Remove mark", func() error { return c.MarkDir.Remove(m) })
}
