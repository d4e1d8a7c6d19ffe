//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/test/cluster"
)

// The classes that the lab's installation of Berth makes; see test/lab/classes.yaml.
const (
	classExt4 = "berth-ext4"
	classXFS  = "berth-xfs"
	group     = "vg0"
)

// bench is one test's place in the cluster.
type bench struct {
	*testing.T
	*cluster.Cluster
	ctx       context.Context
	namespace string
}

// begin makes a namespace for a test, and removes it with all its volumes when
// the test ends.
func begin(t *testing.T) *bench {
	t.Helper()
	return beginFor(t, 4*limit)
}

// beginFor is begin for a test that takes longer than most.
func beginFor(t *testing.T, long time.Duration) *bench {
	t.Helper()
	// This context lives until after the clean-up. The test's own context ends before it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), long)
	t.Cleanup(cancel)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"}}
	b := &bench{T: t, Cluster: shared, ctx: ctx}
	b.must(shared.Create(ctx, ns), "creating a namespace")
	b.namespace = ns.Name
	t.Cleanup(func() { b.end(ns) })
	return b
}

func (b *bench) end(ns *corev1.Namespace) {
	ctx := b.within()
	volumes := b.volumes(ctx)
	if err := b.Delete(ctx, ns); err != nil {
		b.Errorf("deleting namespace: %v", err)
		return
	}
	if err := cluster.AwaitGone(ctx, b.Cluster, ns); err != nil {
		b.Error(err)
	}
	for _, v := range volumes {
		if err := cluster.AwaitGone(ctx, b.Cluster, &v); err != nil {
			b.Errorf("the volume outlived its claim: %v\n%s", err, b.picture(&v))
		}
	}
}

// picture returns the present state of the volume, for the log of a failed test.
func (b *bench) picture(v *v1alpha1.Volume) string {
	ctx, cancel := context.WithTimeout(b.ctx, limit)
	defer cancel()
	if err := b.Get(ctx, client.ObjectKeyFromObject(v), v); err != nil {
		return err.Error()
	}
	v.ManagedFields = nil
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// volumes returns the Volumes of this test's claims.
func (b *bench) volumes(ctx context.Context) []v1alpha1.Volume {
	var all v1alpha1.VolumeList
	if err := b.List(ctx, &all); err != nil {
		b.Errorf("listing volumes: %v", err)
	}
	var mine []v1alpha1.Volume
	for _, v := range all.Items {
		if v.Spec.ClaimRef != nil && v.Spec.ClaimRef.Namespace == b.namespace {
			mine = append(mine, v)
		}
	}
	return mine
}

func (b *bench) must(err error, what string) {
	b.Helper()
	if err != nil {
		b.Errorf("%s: %v", what, err)
		b.tell()
		b.FailNow()
	}
}

// within returns the context for one wait.
func (b *bench) within() context.Context {
	ctx, cancel := context.WithTimeout(b.ctx, limit)
	b.Cleanup(cancel)
	return ctx
}

// create makes objects.
func (b *bench) create(objs ...client.Object) {
	b.Helper()
	for _, o := range objs {
		b.must(b.Create(b.ctx, o), "creating "+o.GetName())
	}
}

// claim makes a claim.
func (b *bench) claim(name, class, size string, opts ...cluster.ClaimOption) *corev1.PersistentVolumeClaim {
	b.Helper()
	c := cluster.Claim(b.namespace, name, class, size, opts...)
	b.create(c)
	return c
}

// run makes a pod with the claims and waits until it runs.
func (b *bench) run(name string, claim *corev1.PersistentVolumeClaim, opts ...cluster.PodOption) *corev1.Pod {
	b.Helper()
	p := cluster.Pod(b.namespace, name, []*corev1.PersistentVolumeClaim{claim}, opts...)
	b.create(p)
	b.awaitRunning(p)
	return p
}

func (b *bench) awaitRunning(p *corev1.Pod) {
	b.Helper()
	b.must(cluster.Await(b.within(), b.Cluster, p, "running", cluster.Running), "starting pod")
}

// remove deletes an object and waits until it is gone.
func (b *bench) remove(o client.Object) {
	b.Helper()
	b.must(b.Delete(b.ctx, o), "deleting "+o.GetName())
	b.must(cluster.AwaitGone(b.within(), b.Cluster, o), "deleting "+o.GetName())
}

// sh runs a script in a pod.
func (b *bench) sh(p *corev1.Pod, script string) string {
	b.Helper()
	out, err := b.Exec(b.within(), p, "sh", "-c", script)
	b.must(err, "in the pod")
	return out
}

// labs is held by a test that changes the lab: the lab takes one command at a time.
var labs sync.Mutex

// lab runs a command of the lab's.
func (b *bench) lab(args ...string) string {
	b.Helper()
	labs.Lock()
	defer labs.Unlock()
	out, err := b.Lab.Output(b.within(), args...)
	b.must(err, "in the lab")
	return out
}

// plugged puts an empty disk into a node for the time of a test, and returns its path.
func (b *bench) plugged(node, size string) string {
	b.Helper()
	name, device, _ := strings.Cut(b.lab("disk", "add", node, "--size", size), " ")
	b.Cleanup(func() { b.lab("disk", "remove", node, name) })
	b.onNode(node, "udevadm", "wait", "--timeout=60", device)
	return device
}

// onNode runs a command on a node.
func (b *bench) onNode(node string, argv ...string) string {
	b.Helper()
	out, err := b.Lab.OnNode(b.within(), node, argv...)
	b.must(err, "on node "+node)
	return out
}

// logicalVolumes returns the names of a node's logical volumes.
func (b *bench) logicalVolumes(node string) []string {
	b.Helper()
	return strings.Fields(b.onNode(node, "lvs", "--noheadings", "-o", "lv_name"))
}

// volumeOf returns the Volume of a bound claim.
func (b *bench) volumeOf(c *corev1.PersistentVolumeClaim) *v1alpha1.Volume {
	b.Helper()
	b.must(cluster.Await(b.within(), b.Cluster, c, "bound", cluster.Bound), "binding claim")
	v := &v1alpha1.Volume{}
	b.must(b.Get(b.ctx, client.ObjectKey{Name: c.Spec.VolumeName}, v), "reading the volume")
	return v
}
