package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/survey"
)

const demo = "vol-shareddemoaaaaaaaaaaaaaaaaaaaaaa"

// disks is a cluster of three nodes with one shared disk, for the claim shop/demo: node-1 writes in epoch 7,
// node-2 stands by. The pod shop/db uses it.
func disks(edits ...func(*v1alpha1.Volume)) []client.Object {
	var list []client.Object
	for _, name := range []string{"node-1", "node-2", "node-3"} {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		list = append(list, n, &v1alpha1.StorageNode{ObjectMeta: metav1.ObjectMeta{Name: name}},
			&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "berth-system", Name: v1alpha1.AgentLeasePrefix + name}})
	}
	v := sharedDisk()
	for _, edit := range edits {
		edit(v)
	}
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "demo"}}
	pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: v1alpha1.DiskDriverName, VolumeHandle: demo}
	pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: "demo", UID: "claim"}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "demo", UID: "claim"}}
	claim.Spec.VolumeName = pv.Name
	return append(list, v, pv, claim, podOn("node-1"))
}

func sharedDisk() *v1alpha1.Volume {
	e := v1alpha1.Epoch{Number: 7, ID: "seven"}
	v := &v1alpha1.Volume{ObjectMeta: metav1.ObjectMeta{Name: demo}}
	v.Spec = v1alpha1.VolumeSpec{
		Driver: v1alpha1.DiskDriverName, Capacity: resource.MustParse("1Gi"), VolumeMode: v1alpha1.Filesystem, FSType: v1alpha1.Ext4,
		PoolClass: "none", Sharing: v1alpha1.Exclusive, Placement: v1alpha1.PlacementVolume,
		Replication: v1alpha1.Replication{Factor: 2, Kind: v1alpha1.ReplicationAttachments, Failover: &v1alpha1.Failover{Automatic: true},
			Attachments: &v1alpha1.Attachments{MaxShares: 3, Persistent: true, Disk: &v1alpha1.SharedDisk{Handle: "sim:///demo", Identity: "demo"}}},
	}
	v.Status.Ownership = &v1alpha1.Ownership{
		Epoch: e, Lineage: []v1alpha1.Branch{{Epoch: e}}, Primary: v1alpha1.Primary{Node: "node-1", Boot: "boot", Phase: v1alpha1.PrimaryActive},
		Keys:     []v1alpha1.ReservationKey{{Node: "node-1", Epoch: e}},
		Replicas: []v1alpha1.OwnedReplica{{Node: "node-1", State: v1alpha1.OwnedReady}, {Node: "node-2", State: v1alpha1.OwnedReady}},
	}
	return v
}

// shared makes the disk one that node-2 writes, too, in epoch 6.
func shared(v *v1alpha1.Volume) {
	o := v.Status.Ownership
	v.Spec.Sharing, v.Spec.VolumeMode, v.Spec.FSType, v.Spec.Replication.Factor = v1alpha1.Shared, v1alpha1.Block, "", 1
	o.Writers = []v1alpha1.Writer{
		{Node: "node-1", Boot: "boot", Phase: v1alpha1.PrimaryActive, Epoch: o.Epoch},
		{Node: "node-2", Boot: "boot", Phase: v1alpha1.PrimaryActive, Epoch: v1alpha1.Epoch{Number: 6, ID: "six"}},
	}
}

// podOn is a pod on a node that uses the shared disk.
func podOn(node string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: types.UID("db-on-" + node)}}
	p.Spec.NodeName, p.Spec.Containers = node, []corev1.Container{{Name: "db", Image: "db"}}
	p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "demo"}}}}
	p.Status.Phase = corev1.PodRunning
	return p
}

// pretend is a cluster of fakes.
func pretend(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) client.Client {
	t.Helper()
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&v1alpha1.Volume{}).WithInterceptorFuncs(funcs).Build()
}

// replicas runs the command an hour after the epoch of Unix.
func replicas(t *testing.T, objects []client.Object, args ...string) (out, notes string, err error) {
	t.Helper()
	c := pretend(t, interceptor.Funcs{}, objects...)
	cmd := newReplicasCommand(&target{system: "berth-system"}, func(target) (client.Reader, string, error) { return c, "shop", nil },
		testingclock.NewFakePassiveClock(time.Unix(3600, 0)))
	var stdout, stderr strings.Builder
	cmd.SetArgs(args)
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	err = cmd.ExecuteContext(t.Context())
	return stdout.String(), stderr.String(), err
}

func TestReplicasAreATableThatOtherProgramsCanReadToo(t *testing.T) {
	waiting := func(v *v1alpha1.Volume) {
		v.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionWaiting, Status: metav1.ConditionTrue, Reason: "NoProof", Message: "taint it", LastTransitionTime: metav1.Unix(3480, 0)}}
	}
	out, notes, err := replicas(t, disks(waiting), "demo")
	if err != nil || notes != "" {
		t.Fatal(err, notes)
	}
	if diff := cmp.Diff(`NAMESPACE  CLAIM  NODE    ROLE     STATE  EPOCH  WAITS    SINCE
shop       demo   node-1  Primary  Ready  7      NoProof  2m
shop       demo   node-2  Standby  Ready  7      -        -
`, out); diff != "" {
		t.Error(diff)
	}
	if wide, _, err := replicas(t, disks(waiting), demo, "-o", "wide"); err != nil || !strings.Contains(wide, "taint it") || !strings.Contains(wide, demo) {
		t.Errorf("%v: %s", err, wide)
	}
	var rows []survey.Replica
	if out, _, err := replicas(t, disks(waiting), "-o", "json"); err != nil || json.Unmarshal([]byte(out), &rows) != nil || len(rows) != 2 || rows[0].Reason != "NoProof" {
		t.Errorf("%v: %s", err, out)
	}
}

func TestEachOfSeveralWritersIsShownWithItsEpoch(t *testing.T) {
	third := func(v *v1alpha1.Volume) {
		v.Status.Ownership.Replicas = append(v.Status.Ownership.Replicas, v1alpha1.OwnedReplica{Node: "node-3", State: v1alpha1.OwnedReady})
	}
	out, _, err := replicas(t, disks(shared, third), "demo")
	if diff := cmp.Diff(`NAMESPACE  CLAIM  NODE    ROLE     STATE  EPOCH  WAITS  SINCE
shop       demo   node-1  Primary  Ready  7      -      -
shop       demo   node-2  Primary  Ready  6      -      -
shop       demo   node-3  Standby  Ready  -      -      -
`, out); diff != "" || err != nil {
		t.Errorf("%v: %s", err, diff)
	}
}

func TestAClusterWithoutReplicasIsSaidSo(t *testing.T) {
	if out, notes, err := replicas(t, nil); err != nil || out != "" || notes != "There are no volumes that can fail over.\n" {
		t.Errorf("%v: %s%s", err, out, notes)
	}
	if out, _, err := replicas(t, nil, "-o", "json"); err != nil || out != "[]\n" {
		t.Errorf("%v: %s", err, out)
	}
	if _, _, err := replicas(t, nil, "demo"); err == nil || !strings.Contains(err.Error(), "demo is neither a volume that can fail over") {
		t.Errorf("%v", err)
	}
}
