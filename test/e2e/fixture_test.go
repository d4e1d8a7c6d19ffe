//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
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

// bench is one test's place in the cluster, with what a test of any theme needs.
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

// resize asks for another size of a claim.
func (b *bench) resize(claim *corev1.PersistentVolumeClaim, size string) {
	b.Helper()
	b.must(b.Get(b.ctx, client.ObjectKeyFromObject(claim), claim), "reading claim")
	before := claim.DeepCopy()
	claim.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse(size)
	b.must(b.Patch(b.ctx, claim, client.MergeFrom(before)), "asking for "+size)
}

// snapshot takes a snapshot of a claim, waits until it can be used, and returns it
// with its Snapshot.
func (b *bench) snapshot(name, class string, of *corev1.PersistentVolumeClaim) (*snapshotv1.VolumeSnapshot, *v1alpha1.Snapshot) {
	b.Helper()
	s := cluster.VolumeSnapshot(b.namespace, name, class, of.Name)
	b.create(s)
	b.must(cluster.Await(b.within(), b.Cluster, s, "ready to use", cluster.ReadyToUse), "taking a snapshot")
	return s, &v1alpha1.Snapshot{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.SnapshotName("snapshot-" + string(s.UID))}}
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

// awaitEvent waits for a warning on an object that contains a text.
func (b *bench) awaitEvent(o client.Object, text string) {
	b.Helper()
	ctx := b.within()
	of := client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("involvedObject.name", o.GetName())}
	// A watch without a resource version begins with the existing objects.
	w, err := b.Watch(ctx, &corev1.EventList{}, client.InNamespace(b.namespace), of)
	b.must(err, "watching events")
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			b.Fatalf("no warning on %s says %q", o.GetName(), text)
		case got, open := <-w.ResultChan():
			if !open {
				b.Fatalf("the watch on events ended before a warning said %q", text)
			}
			event, ok := got.Object.(*corev1.Event)
			if ok && got.Type != watch.Deleted && event.Type == corev1.EventTypeWarning && strings.Contains(event.Message, text) {
				return
			}
		}
	}
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

// reads checks the content of a pod's file.
func (b *bench) reads(pod *corev1.Pod, want string) {
	b.Helper()
	if got := b.sh(pod, "cat /data/file"); got != want {
		b.Errorf("%s read %q, want %q", pod.Name, got, want)
	}
}

// plugin runs kubectl berth in the test's namespace.
func (b *bench) plugin(args ...string) string {
	b.Helper()
	out, err := b.Plugin(b.within(), append(args, "-n", b.namespace)...)
	b.must(err, "kubectl berth "+strings.Join(args, " "))
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

// eventually waits for something that no object tells.
func (b *bench) eventually(what string, done func() bool) {
	b.Helper()
	ctx := b.within()
	for !done() {
		select {
		case <-ctx.Done():
			b.Fatalf("waiting until %s: %v", what, ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// volumeOf returns the Volume of a bound claim.
func (b *bench) volumeOf(c *corev1.PersistentVolumeClaim) *v1alpha1.Volume {
	b.Helper()
	b.must(cluster.Await(b.within(), b.Cluster, c, "bound", cluster.Bound), "binding claim")
	v := &v1alpha1.Volume{}
	b.must(b.Get(b.ctx, client.ObjectKey{Name: c.Spec.VolumeName}, v), "reading the volume")
	return v
}
