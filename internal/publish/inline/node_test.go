package inline

import (
	"cmp"
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
	"berth.dev/berth/internal/keyed"
	"berth.dev/berth/internal/mount"
	mountmemory "berth.dev/berth/internal/mount/memory"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/memory"
	"berth.dev/berth/internal/publish/kubeletdir"
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
	// here are the pods that the API server returns, and err is the error that it returns.
	here sets.Set[string]
	err  error
	// asked counts the questions to the API server.
	asked int
	crash *memory.Crash
	// fails are the errors of operations, by name.
	fails map[string]error
	// problem of the volume, if it has one.
	problem string
}

func newNode(t *testing.T) *node {
	t.Helper()
	dir := t.TempDir()
	n := &node{
		t: t, dir: dir, marks: MarkDir(filepath.Join(dir, "plugins/marks")), crash: &memory.Crash{}, fails: map[string]error{},
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
	faults := faults{n.crash, n}
	n.pool = memory.New(n.disks, faults)
	n.Service = New(Config{
		Kubelet: kubeletdir.New(n.dir), Disks: disturbed{n.pool, n.mounts, faults}, Offers: n, Marks: disturbedMarks{n.marks, faults},
		Mounts: func(v provision.Volume) ([]string, error) { return n.mounts.Mounts(v.Content.Source), n.fails["table"] },
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

// kubeletMakes makes the directory that the kubelet makes before it publishes a volume.
func (n *node) kubeletMakes() {
	if err := os.MkdirAll(n.volumeDir(), 0o750); err != nil {
		n.t.Fatal(err)
	}
}

// kubeletForgets removes the kubelet's directory of the pod, as the kubelet does once it has
// unpublished all volumes, or finds none to unpublish.
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

// record returns the node's record of the volume; nil if there is none.
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
	return r != nil && len(n.mounts.Mounts(r.Content.Source)) == 1
}

// left says which parts of the volume are on the node.
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

// faults fail the operations that a node names, and end its process at an effect.
type faults struct {
	*memory.Crash
	node *node
}

func (f faults) Before(ctx context.Context, op memory.Operation, id string) error {
	if err := f.node.fails[string(op)]; err != nil {
		return err
	}
	return f.Crash.Before(ctx, op, id)
}

func (f faults) Around(name string, do func() error) error {
	if err := f.node.fails[name]; err != nil {
		return err
	}
	return f.Crash.Around(name, do)
}

// disturbed are disks that have faults.
type disturbed struct {
	*memory.Provisioner
	mounts *mountmemory.Mounter
	faults faults
}

var _ Disks = disturbed{}

func (d disturbed) Get(ctx context.Context, id string) (provision.Volume, error) {
	v, err := d.Provisioner.Get(ctx, id)
	v.Problem = d.faults.node.problem
	return v, err
}

func (d disturbed) Trim(ctx context.Context, r mount.TrimRequest) (mount.Trimmed, error) {
	return d.mounts.Trim(ctx, r)
}

func (d disturbed) Mount(ctx context.Context, r mount.Request) error {
	return d.faults.Around("Mount", func() error { return d.mounts.Mount(ctx, r) })
}

func (d disturbed) Unmount(ctx context.Context, target string) error {
	return d.faults.Around("Unmount", func() error { return d.mounts.Unmount(ctx, target) })
}

func (d disturbed) Bind(ctx context.Context, r mount.BindRequest) error { return d.mounts.Bind(ctx, r) }
func (d disturbed) Grow(ctx context.Context, r mount.GrowRequest) error { return d.mounts.Grow(ctx, r) }

func (d disturbed) Stats(ctx context.Context, path string) (mount.Stats, error) {
	if err := d.faults.node.fails["Stats"]; err != nil {
		return mount.Stats{}, err
	}
	return d.mounts.Stats(ctx, path)
}

// disturbedMarks are marks that have faults.
type disturbedMarks struct {
	MarkDir
	faults faults
}

func (d disturbedMarks) Has(m Mark) (bool, error) {
	has, err := d.MarkDir.Has(m)
	return has, cmp.Or(d.faults.node.fails["Has mark"], err)
}

func (d disturbedMarks) List() ([]Mark, error) {
	marks, err := d.MarkDir.List()
	return marks, cmp.Or(d.faults.node.fails["List marks"], err)
}

func (d disturbedMarks) Set(m Mark) error {
	return d.faults.Around("Set mark", func() error { return d.MarkDir.Set(m) })
}

func (d disturbedMarks) Remove(m Mark) error {
	return d.faults.Around("Remove mark", func() error { return d.MarkDir.Remove(m) })
}
