package test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/controller/controllertest"
	"berth.dev/berth/internal/schedule"
)

// definition is a kind of the snapshot API as far as the tests need it. The status
// is no subresource, so that a test writes an object at once.
const definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: %[1]s.snapshot.storage.k8s.io
  annotations: {api-approved.kubernetes.io: "unapproved, for a test"}
spec:
  group: snapshot.storage.k8s.io
  scope: %[3]s
  names: {kind: %[2]s, listKind: %[2]sList, plural: %[1]s, singular: %[4]s}
  versions:
    - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

// restores is a cluster in which a pod's claim is made from a snapshot.
type restores struct{ *cluster }

// learn makes the cluster know VolumeSnapshots, until the test ends.
func (r restores) learn(t *testing.T) {
	t.Helper()
	for _, names := range [][]any{
		{"volumesnapshots", "VolumeSnapshot", "Namespaced", "volumesnapshot"},
		{"volumesnapshotcontents", "VolumeSnapshotContent", "Cluster", "volumesnapshotcontent"},
	} {
		o := r.object(t, fmt.Sprintf(definition, names...))
		t.Cleanup(func() {
			err := wait.PollUntilContextTimeout(context.WithoutCancel(t.Context()), 20*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
				err := r.Client.Delete(ctx, o.DeepCopy())
				return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
			})
			if err != nil {
				t.Errorf("removing %s: %v", o.GetName(), err)
			}
		})
		await(t, o.GetName(), func(ctx context.Context) (bool, error) {
			found := o.DeepCopy()
			err := r.Client.Get(ctx, client.ObjectKeyFromObject(o), found)
			text, _ := yaml.Marshal(found.Object["status"])
			return strings.Contains(string(text), "reason: InitialNamesAccepted"), err
		})
	}
}

// object makes an object of its text.
func (r restores) object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	r.create(t, o)
	return o
}

// keep makes a Snapshot that a node says it has, and returns its id.
func (r restores) keep(t *testing.T, n *controllertest.Node) string {
	t.Helper()
	s := &v1alpha1.Snapshot{ObjectMeta: metav1.ObjectMeta{Name: "snap-" + string(uuid.NewUUID()), Labels: map[string]string{v1alpha1.ReplicaLabel(n.Name): ""}}}
	s.Spec.Volume, s.Spec.VolumeMode, s.Spec.PoolClass = "pvc-"+string(uuid.NewUUID()), v1alpha1.Block, r.class
	s.Spec.Replicas = []v1alpha1.ReplicaSpec{{Node: n.Name, Pool: controllertest.Pool}}
	r.create(t, s)
	controllertest.EventuallySnapshot(t, r.Environment, s.Name, func(s *v1alpha1.Snapshot) error {
		if entry := s.Entry(n.Name); entry == nil || entry.State != v1alpha1.SnapshotReady {
			return fmt.Errorf("it is %+v", entry)
		}
		return nil
	})
	return s.Name
}

// take makes a VolumeSnapshot "nightly" ready, with the content that bears its id.
func (r restores) take(t *testing.T, id string) {
	t.Helper()
	vs := &unstructured.Unstructured{}
	vs.SetGroupVersionKind(schedule.VolumeSnapshotKind)
	r.get(t, "nightly", r.class, vs)
	r.object(t, fmt.Sprintf(`
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshotContent
metadata: {name: content-%[1]s}
spec: {driver: local.berth.dev, volumeSnapshotRef: {namespace: %[1]s, name: nightly, uid: %[2]s}}
status: {snapshotHandle: %[3]s, readyToUse: true}
`, r.class, vs.GetUID(), id))
	vs.Object["status"] = map[string]any{"boundVolumeSnapshotContentName": "content-" + r.class, "readyToUse": true}
	if err := r.Client.Update(t.Context(), vs); err != nil {
		t.Fatal(err)
	}
}

// asking makes the VolumeSnapshot "nightly", which is not taken yet.
func (r restores) asking(t *testing.T) {
	t.Helper()
	r.object(t, fmt.Sprintf("{apiVersion: snapshot.storage.k8s.io/v1, kind: VolumeSnapshot, metadata: {namespace: %s, name: nightly}}", r.class))
}

// restoring gives a pod a claim "restored" that is made from "nightly".
func (r restores) restoring(t *testing.T) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		r.create(t, &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: r.class, Name: "restored"},
			Spec: corev1.PersistentVolumeClaimSpec{
				StorageClassName: &r.class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources:     corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
				DataSourceRef: &corev1.TypedObjectReference{APIGroup: &schedule.VolumeSnapshotKind.Group, Kind: schedule.VolumeSnapshotKind.Kind, Name: "nightly"},
			},
		})
		pod.Spec.Volumes = []corev1.Volume{{Name: "restored", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "restored"},
		}}}
	}
}

// wantTold: in the end the one pod waits with this reason.
func (r restores) wantTold(t *testing.T, told string) {
	t.Helper()
	agree(t, func(ctx context.Context) error {
		_, waiting, err := r.pods(ctx)
		if err == nil && (len(waiting) != 1 || !strings.Contains(refused(&waiting[0]), told)) {
			err = fmt.Errorf("%d pods wait, the first one with %q, want %q", len(waiting), refused(&append(waiting, corev1.Pod{})[0]), told)
		}
		return err
	})
}

// wantSelected: the claim is given this node in the end, and no other before.
func (r restores) wantSelected(t *testing.T, n *controllertest.Node) {
	t.Helper()
	await(t, "the claim's node", func(ctx context.Context) (bool, error) {
		claim := &corev1.PersistentVolumeClaim{}
		err := r.Client.Get(ctx, client.ObjectKey{Namespace: r.class, Name: "restored"}, claim)
		selected := claim.Annotations[schedule.SelectedNode]
		if err == nil && selected != "" && selected != n.Name {
			err = fmt.Errorf("the claim goes to %s, want %s", selected, n.Name)
		}
		return selected != "", err
	})
}

// The kinds of the snapshot API are installed late here, and nothing happens but
// the events that the pod waits for: each step has to wake it.
func TestARestoredClaimWaitsForItsSnapshotAndGoesWhereItIs(t *testing.T) {
	c := restores{newCluster(t)}
	c.node(t, "roomy", 20*gi)
	n := c.node(t, "a", 10*gi)
	c.create(t, c.pod("web", c.restoring(t)))
	c.wantTold(t, `claim "restored" is made from snapshot "nightly", which is not known`)
	c.learn(t)
	c.wantTold(t, "which does not exist")
	c.asking(t)
	c.wantTold(t, "which is not taken yet")
	c.take(t, c.keep(t, n))
	c.wantSelected(t, n)
}

func TestAPodIsToldWhereTheSnapshotIsThatItCannotGoTo(t *testing.T) {
	c := restores{newCluster(t)}
	c.node(t, "roomy", 20*gi)
	n := c.node(t, "full", gi)
	c.create(t, c.pod("scratch", c.withInline(gi), func(pod *corev1.Pod) { pod.Spec.NodeSelector[v1alpha1.TopologyKey] = n.Name }))
	c.settle(t, 1)
	c.learn(t)
	c.asking(t)
	c.take(t, c.keep(t, n))
	c.create(t, c.pod("web", c.restoring(t)))
	c.wantTold(t, `1 node(s) did not have the source: claim "restored" is made from snapshot "nightly", which is on node `+n.Name)
	c.end(t, "scratch")
	c.wantSelected(t, n)
}

func TestAStockSchedulerThatAsksTheExtenderRestoresWhereTheSnapshotIs(t *testing.T) {
	at, tls := loopback(t, "127.0.0.1:0"), newSecure(t)
	c := restores{withoutScheduler(t, tls.at(t, at))}
	c.publish(t, c.node(t, "roomy", 20*gi), 20*gi)
	n := c.node(t, "a", 10*gi)
	c.publish(t, n, 10*gi)
	c.startStock(t, "asking", tls.asks(t, at.Addr()))
	c.learn(t)
	c.asking(t)
	c.create(t, c.pod("web", by("asking"), c.restoring(t)))
	c.wantTold(t, `2 Berth: claim "restored" is made from snapshot "nightly", which is not taken yet`)
	c.take(t, c.keep(t, n))
	claim := &corev1.PersistentVolumeClaim{}
	c.get(t, "restored", c.class, claim)
	claim.Labels = map[string]string{"changed": "true"} // a stock scheduler hears of nothing else
	if err := c.Client.Update(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	c.wantSelected(t, n)
}
