package oversight_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest"
	"berth.dev/berth/internal/controller/controllertest"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/record"
)

// diskNodes have guards, and the driver of shared disks; the last one is cordoned.
var diskNodes = []string{"alpha", "beta", "delta"}

// newDiskScene is a real API server with nodes, a shared disk that was made by hand, two controllers of its
// driver with the chart's rights, and one of local volumes beside them.
func newDiskScene(t *testing.T) *scene {
	s := &scene{Environment: apitest.Start(t), t: t, clock: fast{began: time.Now()}, id: v1alpha1.VolumeName(t.Name())}
	for _, n := range diskNodes {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n}}
		node.Spec.Unschedulable = n == "delta"
		s.create(node)
		node.Spec.Taints = nil // a new Node is tainted until it is ready
		if err := s.Client.Update(t.Context(), node); err != nil {
			t.Fatal(err)
		}
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		if err := s.Client.Status().Update(t.Context(), node); err != nil {
			t.Fatal(err)
		}
		s.create(&v1alpha1.StorageNode{ObjectMeta: metav1.ObjectMeta{Name: n}})
		s.create(&storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: n}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{
			{Name: driver.Disk().Name, NodeID: n, Allocatable: &storagev1.VolumeNodeResources{Count: new(int32(4))}}}}})
	}
	s.disk()
	disk := []controllertest.Option{controllertest.WithDriver(driver.Disk()), controllertest.WithConfig(s.account()),
		controllertest.WithClock(s.clock, time.Hour), controllertest.WithLeaderElection()}
	for range 2 {
		controllertest.Start(t, s.Environment, disk...)
	}
	controllertest.Start(t, s.Environment, controllertest.WithLeaderElection())
	return s
}

// disk makes a Volume by hand, with its PersistentVolume and claim.
func (s *scene) disk() {
	s.t.Helper()
	modes, size := driver.Disk().AccessModes[:1], corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	s.create(&v1alpha1.Volume{ObjectMeta: metav1.ObjectMeta{Name: s.id}, Spec: v1alpha1.VolumeSpec{
		Driver: driver.Disk().Name, Capacity: resource.MustParse("1Gi"), VolumeMode: v1alpha1.Block, PoolClass: "san",
		Sharing: v1alpha1.Exclusive, Placement: v1alpha1.PlacementVolume,
		Replication: v1alpha1.Replication{Factor: 2, Kind: v1alpha1.ReplicationAttachments, Attachments: &v1alpha1.Attachments{MaxShares: 3},
			Failover: &v1alpha1.Failover{Automatic: true}},
	}})
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: modes, VolumeName: s.id, Resources: corev1.VolumeResourceRequirements{Requests: size}}}
	s.create(claim)
	s.create(&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: s.id}, Spec: corev1.PersistentVolumeSpec{
		Capacity: size, AccessModes: modes,
		ClaimRef:               &corev1.ObjectReference{Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver.Disk().Name, VolumeHandle: s.id}},
		NodeAffinity:           driver.Disk().Affinity(s.id),
	}})
}

// record is the Volume with its record; both are nil before the record has begun.
func (s *scene) record() (*v1alpha1.Volume, *ownership.Volume) {
	o := controllertest.Volume(s.t, s.Environment, s.id)
	v, err := record.From(o)
	if err != nil {
		return nil, nil
	}
	return o, v
}

// replicas are the nodes of the record with their states.
func (s *scene) replicas() string {
	_, v := s.record()
	if v == nil {
		return "no record"
	}
	var list []string
	for i := range v.Replicas {
		list = append(list, v.Replicas[i].Node+" "+v.Replicas[i].State.String())
	}
	return strings.Join(list, ", ")
}

// writes changes the record as the node's agent does.
func (s *scene) writes(node string, change func(*ownership.Volume)) {
	s.t.Helper()
	agent := s.Agent(s.t, node)
	for range 20 { // a controller may be faster
		o, v := s.record()
		change(v)
		next, err := record.Into(o, v)
		if err != nil {
			s.t.Fatal(err)
		}
		if err = agent.Status().Update(s.t.Context(), next); err == nil {
			return
		}
		s.t.Logf("%s writes again: %v", node, err)
	}
	s.t.Fatalf("the agent of %s cannot write the record", node)
}

// attaches is what an agent does when the device is there.
func (s *scene) attaches(node string) {
	s.writes(node, func(v *ownership.Volume) {
		for i := range v.Replicas {
			if v.Replicas[i].Node == node {
				v.Replicas[i].State = ownership.Ready
			}
		}
	})
}

// takes is what an agent does to own the next epoch and to mount.
func (s *scene) takes(node string) {
	s.writes(node, func(v *ownership.Volume) {
		v.Epoch = lineage.Epoch{Number: v.Epoch.Number + 1, ID: "of-" + node}
		v.Lineage = append(slices.Clone(v.Lineage), lineage.Branch{Epoch: v.Epoch})
		v.Primary, v.Clean = ownership.Primary{Node: node, Boot: boot, Phase: ownership.Preparing}, false
	})
	s.writes(node, func(v *ownership.Volume) { v.Primary.Phase = ownership.Active })
}

// labels are the Nodes with the volume's label.
func (s *scene) labels() string {
	var list corev1.NodeList
	if err := s.Client.List(s.t.Context(), &list, client.MatchingLabels{v1alpha1.VolumeLabelPrefix + s.id: "true"}); err != nil {
		s.t.Fatal(err)
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return strings.Join(names, ", ")
}

// schedules binds a pod as a scheduler does.
func (s *scene) schedules(pod, node string) {
	s.t.Helper()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: pod}}
	if err := s.Client.SubResource("binding").Create(s.t.Context(), p, &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: node}}); err != nil {
		s.t.Fatal(err)
	}
}

func TestASharedDiskFollowsItsPodOnARealAPIServer(t *testing.T) {
	s := newDiskScene(t)
	dies := map[string]context.CancelFunc{}
	for _, n := range diskNodes {
		dies[n] = s.lives(n)
		defer dies[n]()
	}
	began := s.clock.Now()
	is := func(of func() string, want string) func() bool { return func() bool { return of() == want } }
	s.await("the record begins, and no node has the volume or its label", began, func() bool { return s.replicas() == "" && s.labels() == "" })

	s.pod("db", "")
	s.await("a pod waits -> both nodes that fit are open to it", began, is(s.labels, "alpha, beta"))
	s.schedules("db", "alpha")
	s.await("scheduled -> an attachment is reserved there", began, is(s.replicas, "alpha Reserved"))
	s.await("scheduled -> no other node is open", began, is(s.labels, "alpha"))
	s.attaches("alpha")
	s.takes("alpha")
	s.await("mounted -> a standby on the other node that fits", began, is(s.replicas, "alpha Ready, beta Reserved"))
	s.attaches("beta")
	s.await("the standby is ready -> it has the label", began, is(s.labels, "alpha, beta"))

	dies["alpha"]()
	n, off := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "alpha"}}, s.clock.Now()
	taint := []byte(`{"spec":{"taints":[{"key":"node.kubernetes.io/out-of-service","value":"nodeshutdown","effect":"NoExecute"}]}}`)
	if err := s.Client.Patch(t.Context(), n, client.RawPatch("application/merge-patch+json", taint)); err != nil {
		t.Fatal(err)
	}
	s.await("off -> fenced", off, s.fenced)
	s.await("off -> the label is on the standby alone", off, is(s.labels, "beta"))
	s.await("off -> the pod ended", off, s.podEnded)
	s.pod("db-again", "")
	s.schedules("db-again", "beta")
	s.takes("beta")
	s.await("off -> the standby is the primary", off, func() bool { _, v := s.record(); return v.Primary.Node == "beta" })

	s.undisturbed()
}

// undisturbed: the controllers of each driver elect a leader of their own, and the Volume has not been
// touched by those of local volumes.
func (s *scene) undisturbed() {
	s.t.Helper()
	for _, d := range []driver.Driver{driver.Local(), driver.Disk()} {
		lease := &coordinationv1.Lease{}
		if !has(s, lease, apitest.Namespace, d.Controllers) || lease.Spec.HolderIdentity == nil {
			s.t.Errorf("no controller of %s leads", d.Name)
		}
	}
	o := controllertest.Volume(s.t, s.Environment, s.id)
	for _, f := range o.ManagedFields {
		if f.Manager == driver.Local().Controllers {
			s.t.Errorf("a controller of local volumes has written %s", f.FieldsV1)
		}
	}
	if !slices.Contains(o.Finalizers, v1alpha1.VolumeFinalizer) || len(o.Labels) != 2 {
		s.t.Errorf("the Volume has the finalizers %v and the labels %v", o.Finalizers, o.Labels)
	}
}
