package oversight_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest"
	"berth.dev/berth/internal/controller"
	"berth.dev/berth/internal/controller/controllertest"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/record"
)

// scene is a real API server with three nodes, a volume that n1 owns, a pod that uses it there, and two
// controllers that have the chart's rights and no more.
type scene struct {
	*apitest.Environment
	t     *testing.T
	clock fast
	id    string
	// steps are the changes of the record, and when they came.
	mu    sync.Mutex
	steps []string
}

// fast is a clock that runs several times as fast as the machine's.
type fast struct {
	clock.RealClock
	began time.Time
}

const factor = 3

func (f fast) Now() time.Time                  { return f.began.Add(factor * time.Since(f.began)) }
func (f fast) Since(t time.Time) time.Duration { return f.Now().Sub(t) }
func (f fast) After(d time.Duration) <-chan time.Time {
	return f.RealClock.After(d / factor)
}
func (f fast) NewTimer(d time.Duration) clock.Timer   { return f.RealClock.NewTimer(d / factor) }
func (f fast) NewTicker(d time.Duration) clock.Ticker { return f.RealClock.NewTicker(d / factor) }
func (f fast) AfterFunc(d time.Duration, do func()) clock.Timer {
	return f.RealClock.AfterFunc(d/factor, do)
}

func newScene(t *testing.T, v *ownership.Volume, peers answers) *scene {
	s := &scene{Environment: apitest.Start(t), t: t, clock: fast{began: time.Now()}, id: v1alpha1.VolumeName(t.Name())}
	for _, n := range nodes {
		s.create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n}})
		s.create(&v1alpha1.StorageNode{ObjectMeta: metav1.ObjectMeta{Name: n}})
	}
	s.volume(v)
	s.pod("db", "n1")
	s.pod("waits", "n2")
	for range 2 {
		controllertest.Start(t, s.Environment, controllertest.WithDriver(epochs), controllertest.WithConfig(s.account()),
			controllertest.WithClock(s.clock, time.Hour), func(o *controller.Options) { o.Peers, o.Attachments = peers, true })
	}
	return s
}

// create makes an object, and removes it at the end.
func (s *scene) create(o client.Object) {
	s.t.Helper()
	if err := s.Client.Create(s.t.Context(), o); err != nil {
		s.t.Fatal(err)
	}
	o = o.DeepCopyObject().(client.Object) // the caller may change its own until the end
	s.t.Cleanup(func() {
		ctx := context.WithoutCancel(s.t.Context())
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(o), o); apierrors.IsNotFound(err) {
			return
		}
		o.SetFinalizers(nil)
		if err := errors.Join(s.Client.Update(ctx, o), client.IgnoreNotFound(s.Client.Delete(ctx, o, client.GracePeriodSeconds(0)))); err != nil {
			s.t.Error(err)
		}
	})
}

// volume makes the Volume with its record, PersistentVolume and claim.
func (s *scene) volume(v *ownership.Volume) {
	s.t.Helper()
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	o := &v1alpha1.Volume{ObjectMeta: metav1.ObjectMeta{Name: s.id, Finalizers: []string{v1alpha1.VolumeFinalizer}}, Spec: v1alpha1.VolumeSpec{
		Driver: epochs.Name, Capacity: resource.MustParse("1Gi"), VolumeMode: v1alpha1.Block, PoolClass: "fast", Sharing: v1alpha1.Exclusive, Placement: v1alpha1.PlacementVolume,
		Replication: v1alpha1.Replication{Factor: int32(v.Factor), Kind: v1alpha1.ReplicationKind(v.Kind.String()),
			Failover: &v1alpha1.Failover{Automatic: v.Failover.Automatic, MaxDataLoss: &metav1.Duration{Duration: v.Failover.MaxDataLoss}}},
	}}
	if v.Kind.Traits().Attaches {
		o.Spec.Replication.Attachments = &v1alpha1.Attachments{MaxShares: int32(v.Sharing.MaxShares)}
	}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: epochs.AccessModes, VolumeName: s.id, Resources: corev1.VolumeResourceRequirements{Requests: size}}}
	s.create(claim)
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: s.id}, Spec: corev1.PersistentVolumeSpec{
		Capacity: size, AccessModes: epochs.AccessModes,
		ClaimRef:               &corev1.ObjectReference{Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: epochs.Name, VolumeHandle: s.id}},
	}}
	s.create(pv)
	s.create(o)
	written, err := record.Into(o, v)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.Controller(s.t).Status().Update(s.t.Context(), written); err != nil {
		s.t.Fatal(err)
	}
	go s.follow(written.ResourceVersion)
}

// follow notes each change of the record.
func (s *scene) follow(version string) {
	c, err := client.NewWithWatch(s.Config, client.Options{Scheme: s.Scheme})
	if err != nil {
		s.t.Error(err)
		return
	}
	changes, err := c.Watch(s.t.Context(), &v1alpha1.VolumeList{}, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: version}})
	if err != nil {
		s.t.Error(err)
		return
	}
	last := "Active, losses 0, expires false"
	for change := range changes.ResultChan() {
		v, is := change.Object.(*v1alpha1.Volume)
		if !is || v.Name != s.id || v.Status.Ownership == nil {
			continue
		}
		o := v.Status.Ownership
		now := fmt.Sprintf("%s, losses %d, expires %v", o.Primary.Phase, len(o.Losses), o.ExpireAt != nil)
		if now != last {
			s.mu.Lock()
			s.steps = append(s.steps, now)
			s.mu.Unlock()
		}
		last = now
	}
}

// attach has Kubernetes attach the volume to a node, whose kubelet uses it, and a volume of another driver.
func (s *scene) attach(node string) {
	s.t.Helper()
	s.create(&storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "csi-" + node}, Spec: storagev1.VolumeAttachmentSpec{
		Attacher: epochs.Name, NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &s.id}}})
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}
	before := client.MergeFrom(n.DeepCopy())
	n.Status.VolumesInUse = []corev1.UniqueVolumeName{corev1.UniqueVolumeName("kubernetes.io/csi/" + epochs.Name + "^" + s.id), "kubernetes.io/csi/other.example.com^a"}
	if err := s.Client.Status().Patch(s.t.Context(), n, before); err != nil {
		s.t.Fatal(err)
	}
}

// inUse are the volumes that a node's kubelet uses, as its Node says.
func (s *scene) inUse(node string) []corev1.UniqueVolumeName {
	s.t.Helper()
	n := &corev1.Node{}
	if !has(s, n, "", node) {
		s.t.Fatalf("there is no node %s", node)
	}
	return n.Status.VolumesInUse
}

func (s *scene) pod(name, node string) {
	s.t.Helper()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	p.Spec.NodeName, p.Spec.Containers, p.Spec.AutomountServiceAccountToken = node, []corev1.Container{{Name: "c", Image: "i"}}, new(false)
	p.Spec.Volumes = []corev1.Volume{{Name: "d", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	s.create(p)
	if node == "n1" {
		p.Status.Phase = corev1.PodRunning
		if err := s.Client.Status().Update(s.t.Context(), p); err != nil {
			s.t.Fatal(err)
		}
	}
}

// account is a connection as the controllers' account, with the roles of the chart.
func (s *scene) account() *rest.Config {
	s.t.Helper()
	name := "system:serviceaccount:" + apitest.Namespace + ":" + apitest.ControllerAccount
	user := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}}
	for _, o := range roles(s.t) {
		var binding client.Object
		switch r := o.(type) {
		case *rbacv1.ClusterRole:
			binding = &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: r.Name}, Subjects: user,
				RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: r.Name}}
		case *rbacv1.Role:
			binding = &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Name}, Subjects: user,
				RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: r.Name}}
		}
		for _, o := range []client.Object{o, binding} {
			if err := client.IgnoreAlreadyExists(s.Client.Create(s.t.Context(), o)); err != nil {
				s.t.Fatal(err)
			}
		}
	}
	config := rest.CopyConfig(s.Config)
	config.Impersonate.UserName = name
	return config
}

// roles are the chart's roles of the controllers, from what it renders to.
func roles(t *testing.T) (found []client.Object) {
	t.Helper()
	file, err := os.Open("../../../test/chart/testdata/everything.golden.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	d := yaml.NewYAMLOrJSONDecoder(file, 4096)
	for {
		var o struct {
			metav1.TypeMeta   `json:",inline"`
			metav1.ObjectMeta `json:"metadata"`
			Rules             []rbacv1.PolicyRule `json:"rules"`
		}
		switch err := d.Decode(&o); {
		case errors.Is(err, io.EOF):
			if len(found) != 4 {
				t.Fatalf("the chart has %d roles of the controllers", len(found))
			}
			return found
		case err != nil:
			t.Fatal(err)
		}
		if o.Name != "other-controller" && o.Name != "other-oversight" {
			continue
		}
		switch o.Kind {
		case "ClusterRole":
			found = append(found, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: o.Name}, Rules: o.Rules})
		case "Role":
			found = append(found, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name}, Rules: o.Rules})
		}
	}
}
