package staging

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/keyed"
	"berth.dev/berth/internal/mount"
	mountmemory "berth.dev/berth/internal/mount/memory"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/memory"
)

const (
	id    = "pvc-00000000-0000-0000-0000-000000000001"
	other = "pvc-00000000-0000-0000-0000-000000000002"
	mib   = int64(1 << 20)
)

// here is the name of the node.
const here = "node-1"

var vg0 = provision.PoolRef{Type: "LVM", Name: "vg0"}

// node is a node with one pool, a kubelet directory and the service.
type node struct {
	*Service
	dir    string
	disks  *memory.Disks
	mounts *mountmemory.Mounter
	pool   *memory.Provisioner
	locks  *keyed.Locks[string]
	specs  specs
	// hang, if set, holds an operation on a device or path until its context ends.
	hang func(subject string) bool
	// seen, if set, is called before each operation on a disk or a mount, and may refuse it.
	seen func(operation string) error
	// owner, if set, replaces that of volumes with one copy after a restart.
	owner Owner
	// fails are the errors of operations, by name of the operation.
	fails map[string]error
	// meanwhile, if set, is called before an operation on a mount.
	meanwhile func()
	// open lets every change of a record fail, as with an open device.
	open bool
	// copying are the volumes that are not yet copies of their sources.
	copying map[string]bool
	// identity, if set, replaces that of each device.
	identity *provision.Identity
	// problems of the volumes that have one.
	problems map[string]string
	// options of the latest mount of each device, and of mkfs by volume.
	options     map[string][]string
	mkfsOptions map[string]string
	// grown are the devices whose filesystem was grown to their size.
	grown map[string]bool
}

// specs are the known specs of Volumes.
type specs map[string]*v1alpha1.VolumeSpec

func (s specs) Spec(_ context.Context, id string) *v1alpha1.VolumeSpec { return s[id] }

func newNode(t *testing.T) *node {
	t.Helper()
	n := &node{
		dir:   t.TempDir(),
		disks: memory.NewDisks(memory.PoolConfig{PoolRef: vg0, Total: 1024 * mib}),
		locks: &keyed.Locks[string]{}, specs: specs{},
		copying: map[string]bool{}, problems: map[string]string{}, options: map[string][]string{}, mkfsOptions: map[string]string{}, grown: map[string]bool{},
		fails: map[string]error{},
	}
	n.pool, n.mounts = memory.New(n.disks, nil), mountmemory.New(n.disks)
	n.restart()
	return n
}

// restart forgets everything that is in the process's memory.
func (n *node) restart() {
	table := func(v provision.Volume) ([]string, error) {
		if err := n.see("table"); err != nil {
			return nil, err
		}
		if err := n.fails["table"]; err != nil {
			return nil, err
		}
		return n.mounts.Mounts(v.Content.Source), nil
	}
	var owner Owner = OneCopy{Locks: n.locks}
	if n.owner != nil {
		owner = n.owner
	}
	n.Service = New(Config{
		Node: here, KubeletDir: n.dir, Disks: disturbed{n, n.pool, n.mounts}, Wishes: n.specs, Mounts: table, Locks: n.locks, Owner: owner,
	})
}

// volume carves a volume that is to bear a filesystem; an empty one is Block.
func (n *node) volume(t *testing.T, id, fs string) {
	t.Helper()
	if _, err := n.pool.Create(t.Context(), provision.CreateRequest{ID: id, Pool: vg0, Size: 64 * mib}); err != nil {
		t.Fatal(err)
	}
	n.specs[id] = spec(fs, vg0)
}

// spec of a volume that is to bear a filesystem, in a pool of this node; an empty one is Block.
func spec(fs string, pool provision.PoolRef) *v1alpha1.VolumeSpec {
	s := &v1alpha1.VolumeSpec{
		VolumeMode: v1alpha1.Filesystem, FSType: v1alpha1.FSType(fs), Replicas: []v1alpha1.ReplicaSpec{{Node: here, Pool: pool.Name}},
	}
	if fs == "" {
		s.VolumeMode = v1alpha1.Block
	}
	return s
}

func (n *node) path(name string) string { return filepath.Join(n.dir, name) }

func (n *node) record(t *testing.T, id string) provision.Volume {
	t.Helper()
	v, err := n.pool.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func (n *node) stage(t *testing.T, id string) {
	t.Helper()
	if err := n.Stage(t.Context(), StageRequest{ID: id, Path: n.path("stage-" + id), Block: n.specs[id].VolumeMode == v1alpha1.Block}); err != nil {
		t.Fatal(err)
	}
}

// publication asks for a volume at a target below the kubelet's directory.
func (n *node) publication(id, target string) PublishRequest {
	return PublishRequest{ID: id, StagingPath: n.path("stage-" + id), Target: n.path(target), Block: n.specs[id].VolumeMode == v1alpha1.Block}
}

func (n *node) publish(t *testing.T, id, target string) {
	t.Helper()
	if err := n.Publish(t.Context(), n.publication(id, target)); err != nil {
		t.Fatal(err)
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// disturbed holds operations as a dead device would.
type disturbed struct {
	node *node
	*memory.Provisioner
	mount.Mounter
}

var _ Disks = disturbed{}

func (n *node) see(operation string) error {
	if n.seen == nil {
		return nil
	}
	return n.seen(operation)
}

func (d disturbed) held(ctx context.Context, operation, subject string) error {
	if err := d.node.see(operation); err != nil {
		return err
	}
	if d.node.hang == nil || !d.node.hang(subject) {
		return d.node.fails[operation]
	}
	<-ctx.Done()
	return ctx.Err()
}

func (d disturbed) Get(ctx context.Context, id string) (provision.Volume, error) {
	if err := d.node.see("get"); err != nil {
		return provision.Volume{}, err
	}
	if err := d.node.fails["get"]; err != nil {
		return provision.Volume{}, err
	}
	v, err := d.Provisioner.Get(ctx, id)
	if d.node.identity != nil {
		v.Content.Identity = *d.node.identity
	}
	v.Copying, v.Problem = d.node.copying[id], d.node.problems[id]
	return v, err
}

func (d disturbed) Format(ctx context.Context, r provision.FormatRequest) (provision.Volume, error) {
	if err := d.held(ctx, "format", r.ID); err != nil {
		return provision.Volume{}, err
	}
	if d.node.open {
		return provision.Volume{}, provision.ErrInUse
	}
	d.node.mkfsOptions[r.ID] = r.Options
	return d.Provisioner.Format(ctx, r)
}

func (d disturbed) Mount(ctx context.Context, r mount.Request) error {
	if err := d.held(ctx, "mount", r.Target); err != nil {
		return err
	}
	d.node.options[r.Content.Source] = r.Options
	return d.Mounter.Mount(ctx, r)
}

func (d disturbed) Grow(ctx context.Context, r mount.GrowRequest) error {
	if d.node.meanwhile != nil {
		d.node.meanwhile()
	}
	if err := d.node.see("grow"); err != nil {
		return err
	}
	if err := d.node.fails["grow"]; err != nil {
		return err
	}
	err := d.Mounter.Grow(ctx, r)
	d.node.grown[r.Content.Source] = err == nil
	return err
}

func (d disturbed) Unmount(ctx context.Context, target string) error {
	if err := d.held(ctx, "unmount", target); err != nil {
		return err
	}
	return d.Mounter.Unmount(ctx, target)
}

func (d disturbed) Stats(ctx context.Context, path string) (mount.Stats, error) {
	if d.node.meanwhile != nil {
		d.node.meanwhile()
	}
	if err := d.held(ctx, "stats", path); err != nil {
		return mount.Stats{}, err
	}
	return d.Mounter.Stats(ctx, path)
}
