package pooled_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/pooled"
	"berth.dev/berth/internal/decide/entries"
	"berth.dev/berth/internal/lineage"
	mountmemory "berth.dev/berth/internal/mount/memory"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/poold"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/memory"
)

const (
	volume = "pvc-00000000-0000-0000-0000-000000000001"
	unit   = 4 << 20
)

var (
	vg      = provision.PoolRef{Type: provision.LVM, Name: "vg"}
	epoch   = lineage.Epoch{Number: 1, ID: "one"}
	promise = ownership.Promise{Epoch: epoch, Primary: "alpha", Boot: "boot", Lineage: lineage.Lineage{{Epoch: epoch}}}
)

func point(seq uint64) lineage.Point { return lineage.Point{Epoch: epoch, Seq: seq} }

// node is a node with a pool in memory, and what it knows of pools and objects.
type node struct {
	*pooled.Pools
	t      *testing.T
	disks  *memory.Disks
	mounts *mountmemory.Mounter
	// may: the report may have the volume. read are the pools that were read. early: there is no report yet.
	may, early bool
	read       []string
	deleted    []string
	// passed counts what leaves by the limits.
	passed *meter
	// named are the pools of the volume, and unwatched says that the watch does not show objects.
	named     []string
	unwatched bool
	class     *v1alpha1.PoolClass
	address   string
}

var errUnwatched = errors.New("the watch is not filled")

func (n *node) MayHaveVolume(string) bool               { return n.may }
func (n *node) Pool(r provision.PoolRef) provision.Pool { return provision.Pool{PoolRef: r} }
func (n *node) Deleted(id string)                       { n.deleted = append(n.deleted, id) }

func (n *node) HasRead(pool string) (bool, error) {
	if n.early {
		return false, errors.New("no report yet")
	}
	return slices.Contains(n.read, pool), nil
}

func (n *node) watched() error {
	if n.unwatched {
		return errUnwatched
	}
	return nil
}

// objects are those of the node's watch.
type objects struct{ *node }

func (o objects) Pools(context.Context, string) ([]string, error) { return o.named, o.watched() }
func (o objects) Class(context.Context, string) (*v1alpha1.PoolClass, error) {
	return o.class, o.watched()
}

func (o objects) ClassOf(context.Context, string) (*v1alpha1.PoolClass, error) {
	return o.class, o.watched()
}

func newNode(t *testing.T, name string, streams *pooled.Streams) *node {
	t.Helper()
	n := &node{t: t, disks: memory.NewDisks(memory.PoolConfig{PoolRef: vg, Total: 200 * unit}), read: []string{vg.Name}, named: []string{vg.Name}}
	n.mounts = mountmemory.New(n.disks)
	n.class = &v1alpha1.PoolClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}, Spec: v1alpha1.PoolClassSpec{
		Provisioner: v1alpha1.ProvisionerLVM, LVM: &v1alpha1.LVMPools{VolumeGroups: []string{vg.Name}},
	}}
	n.Pools = pooled.New(pooled.Config{
		Node: name, Disks: poold.NewLocal(memory.New(n.disks, nil), n.mounts), Report: n, Objects: objects{n}, Clock: clock.RealClock{}, Streams: streams,
		Mounts: func(v provision.Volume) ([]string, error) { return n.mounts.Mounts(v.Content.Source), nil },
	})
	return n
}

func object(change ...func(*v1alpha1.Volume)) *v1alpha1.Volume {
	v := &v1alpha1.Volume{ObjectMeta: metav1.ObjectMeta{Name: volume}, Spec: v1alpha1.VolumeSpec{
		Capacity: resource.MustParse("64Mi"), VolumeMode: v1alpha1.Filesystem, FSType: v1alpha1.Ext4, PoolClass: "fast",
		Replication: v1alpha1.Replication{Kind: v1alpha1.ReplicationSnapshots, Factor: 2},
		Replicas:    []v1alpha1.ReplicaSpec{{Node: "alpha", Pool: vg.Name}, {Node: "beta", Pool: vg.Name}},
	}}
	for _, c := range change {
		c(v)
	}
	return v
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// made makes the copy, opens it, writes a text and keeps it as the first point.
func (n *node) made(text string) {
	n.t.Helper()
	ctx := n.t.Context()
	must(n.t, n.Make(ctx, object(), 16*unit))
	must(n.t, n.Mark(ctx, volume, provision.Mark{Promise: promise, Opened: epoch}))
	_, err := n.Writable(ctx, volume)
	must(n.t, err)
	n.takes(1, text)
}

func (n *node) takes(seq uint64, text string) {
	n.t.Helper()
	n.disks.Write(volume, text)
	must(n.t, n.Snapshot(n.t.Context(), provision.PointRequest{Volume: volume, Point: point(seq)}))
}

func TestACopyIsAbsentOnlyIfNoPoolThatMayHaveItIsAway(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(n *node)
		want   error
	}{
		"all that may have it was read":       {func(*node) {}, provision.ErrNotFound},
		"the report shows it":                 {func(n *node) { n.may = true }, provision.ErrUnavailable},
		"its pool is not in the report":       {func(n *node) { n.read = nil }, provision.ErrUnavailable},
		"another pool is not in the report":   {func(n *node) { n.named = []string{"vg", "vg2"} }, provision.ErrUnavailable},
		"there is no report yet":              {func(n *node) { n.early = true }, provision.ErrUnavailable},
		"the watch does not show where it is": {func(n *node) { n.unwatched = true }, provision.ErrUnavailable},
		"the node never had any pool":         {func(n *node) { n.named = nil }, provision.ErrNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, "alpha", nil)
			tc.change(n)
			if s, err := n.State(t.Context(), volume); !errors.Is(err, tc.want) || s.Exists {
				t.Errorf("the state is %+v, %v; want %v", s.Copy, err, tc.want)
			}
			if errors.Is(tc.want, provision.ErrNotFound) {
				return
			}
			if err := n.Make(t.Context(), object(), unit); !errors.Is(err, provision.ErrUnavailable) {
				t.Errorf("a copy is made where another may come back: %v", err)
			}
		})
	}
}

func TestACopyIsMadeAsItsClassSays(t *testing.T) {
	for name, tc := range map[string]struct {
		volume *v1alpha1.Volume
		change func(n *node)
		want   error
	}{
		"in the pool of the class":              {volume: object()},
		"not in a pool that the class lacks":    {volume: object(), change: func(n *node) { n.class.Spec.LVM.VolumeGroups = []string{"other"} }, want: entries.ErrWrongPool},
		"not where the Volume names no pool":    {volume: object(func(v *v1alpha1.Volume) { v.Spec.Replicas = v.Spec.Replicas[1:] }), want: entries.ErrWrongPool},
		"not as a copy of another volume":       {volume: object(func(v *v1alpha1.Volume) { v.Spec.Source = &v1alpha1.VolumeSource{Volume: volume} }), want: provision.ErrUnsupported},
		"not while the class is not known":      {volume: object(), change: func(n *node) { n.unwatched = true }, want: provision.ErrUnavailable},
		"not where the spare of the class goes": {volume: object(), change: func(n *node) { n.class.Spec.Spare = resource.NewQuantity(199*unit, resource.BinarySI) }, want: provision.ErrNoSpace},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, "alpha", nil)
			if tc.change != nil {
				tc.change(n)
			}
			err := n.Make(t.Context(), tc.volume, 16*unit)
			if !errors.Is(err, tc.want) {
				t.Fatalf("it is told %v, want %v", err, tc.want)
			}
			s, _ := n.State(t.Context(), volume)
			if (s.Size == 16*unit) != (tc.want == nil) {
				t.Errorf("the copy has %d bytes", s.Size)
			}
		})
	}
}

func TestACopyGrowsAndGoesWithAllThatItKeeps(t *testing.T) {
	n := newNode(t, "alpha", nil)
	n.made("text")
	must(t, n.Make(t.Context(), object(), 32*unit))
	if s, err := n.State(t.Context(), volume); err != nil || s.Size != 32*unit || s.Tip() != point(1) {
		t.Errorf("it has %d bytes, its newest point is %v, %v", s.Size, s.Tip(), err)
	}
	must(t, n.Destroy(t.Context(), volume))
	if _, err := n.State(t.Context(), volume); !errors.Is(err, provision.ErrNotFound) || !slices.Contains(n.deleted, volume) || n.disks.Places() != 0 {
		t.Errorf("after its end: %v; noted are %v; %d places are left", err, n.deleted, n.disks.Places())
	}
}
