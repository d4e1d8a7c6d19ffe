package oversight_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
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
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/guard"
	guardlease "berth.dev/berth/internal/guard/lease"
	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/record"
)

const boot = "boot-1"

var (
	epochs = driver.Driver{Name: "disk.berth.dev", AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, Epochs: true}
	e1, e2 = lineage.Epoch{Number: 1, ID: "one"}, lineage.Epoch{Number: 2, ID: "two"}
	first  = lineage.Point{Epoch: e1, Seq: 1}
	nodes  = []string{"n1", "n2", "n3"}
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

const factor = 4

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
			controllertest.WithClock(s.clock, time.Hour), func(o *controller.Options) { o.Peers = peers })
	}
	return s
}

// create makes an object, and removes it at the end.
func (s *scene) create(o client.Object) {
	s.t.Helper()
	if err := s.Client.Create(s.t.Context(), o); err != nil {
		s.t.Fatal(err)
	}
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

// answers are those of the replicas.
type answers []ownership.Peer

func (a answers) Ask(_ context.Context, _ string, asked []string) (given []ownership.Peer) {
	for _, p := range a {
		if slices.Contains(asked, p.Node) {
			given = append(given, p)
		}
	}
	return given
}

// lives renews the leases of a node, as its guard, agent and kubelet do, until it is told to stop.
func (s *scene) lives(node string) (dies context.CancelFunc) {
	ctx, dies := context.WithCancel(s.t.Context())
	l := &guardlease.Lease{Client: s.Guard(s.t, node), Node: node, Namespace: apitest.Namespace, Boot: boot, Now: s.clock.Now}
	agent := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: apitest.Namespace, Name: v1alpha1.AgentLeasePrefix + node}}
	kubelet := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: node}}
	s.create(agent)
	s.create(kubelet)
	began, answered := s.clock.Now(), s.clock.Now()
	go func() {
		ticks := s.clock.NewTicker(5 * time.Second)
		defer ticks.Stop()
		for ctx.Err() == nil {
			sent := s.clock.Now()
			_, err := l.Renew(ctx, func() guard.Renewal {
				return guard.Renewal{Watchdog: true, Sent: sent.Sub(began), Silent: sent.Sub(answered)}
			})
			if err == nil {
				answered = sent
			}
			for _, o := range []*coordinationv1.Lease{agent, kubelet} {
				before := client.MergeFrom(o.DeepCopy())
				o.Spec.RenewTime = &metav1.MicroTime{Time: sent}
				if s.Client.Patch(ctx, o, before) != nil {
					break // it is over
				}
			}
			select {
			case <-ctx.Done():
			case <-ticks.C():
			}
		}
	}()
	return dies
}

// await returns how long something takes, on the fast clock.
func (s *scene) await(what string, since time.Time, is func() bool) time.Duration {
	s.t.Helper()
	deadline := time.NewTimer(time.Minute)
	defer deadline.Stop()
	for !is() {
		select {
		case <-deadline.C:
			s.t.Fatalf("it did not come to this: %s; the steps were %v", what, s.taken())
		case <-s.clock.After(40 * time.Millisecond):
		}
	}
	took := s.clock.Since(since)
	s.t.Logf("%6.2f s  %s", took.Seconds(), what)
	return took
}

func (s *scene) taken() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.steps)
}

func (s *scene) fenced() bool {
	v := controllertest.Volume(s.t, s.Environment, s.id)
	return v.Status.Ownership.Primary.Phase == v1alpha1.PrimaryFenced
}

// has tells whether an object of that name exists.
func has[T client.Object](s *scene, o T, namespace, name string) bool {
	s.t.Helper()
	err := s.Client.Get(s.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, o)
	if client.IgnoreNotFound(err) != nil {
		s.t.Fatal(err)
	}
	return err == nil
}

func (s *scene) podEnded() bool { return !has(s, &corev1.Pod{}, "default", "db") }

func copies() *ownership.Volume {
	v := &ownership.Volume{
		Kind: ownership.Snapshots, Factor: 3, Epoch: e2, RecoveryPoint: first, Lineage: lineage.Lineage{{Epoch: e1}, {Epoch: e2, From: first}},
		Primary:  ownership.Primary{Node: "n1", Boot: boot, Phase: ownership.Active},
		Failover: ownership.Failover{Automatic: true, MaxDataLoss: time.Minute},
	}
	for _, n := range nodes {
		v.Replicas = append(v.Replicas, ownership.Replica{Node: n, State: ownership.Ready, Point: first})
	}
	return v
}

func TestATaintFencesThePrimaryOnARealAPIServer(t *testing.T) {
	v := copies()
	v.Kind, v.Factor, v.RecoveryPoint, v.Lineage = ownership.Attachments, 2, lineage.Point{}, lineage.Lineage{{Epoch: e1}, {Epoch: e2}}
	v.Sharing, v.Replicas = ownership.Sharing{MaxShares: 2}, []ownership.Replica{{Node: "n1", State: ownership.Ready}, {Node: "n2", State: ownership.Ready}}
	s := newScene(t, v, nil)
	for _, n := range nodes[1:] {
		defer s.lives(n)()
	}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	began := s.clock.Now()
	taint := []byte(`{"spec":{"taints":[{"key":"node.kubernetes.io/out-of-service","value":"nodeshutdown","effect":"NoExecute"}]}}`)
	if err := s.Client.Patch(t.Context(), n, client.RawPatch("application/merge-patch+json", taint)); err != nil {
		t.Fatal(err)
	}
	s.await("tainted -> fenced", began, s.fenced)
	s.await("tainted -> the pod ended", began, s.podEnded)
	if !has(s, &corev1.Pod{}, "default", "waits") {
		t.Error("the pod of the standby was ended")
	}
	s.await("tainted -> the record has been Fenced, once", began, func() bool {
		return slices.Equal(s.taken(), []string{"Fenced, losses 0, expires false"})
	})
}

func TestTheLapsedLeaseOfAGuardFencesThePrimaryOnARealAPIServer(t *testing.T) {
	answer := ownership.Copy{Exists: true, Points: []lineage.Point{first}, Promise: ownership.Promise{Epoch: e2, Primary: "n1", Boot: boot, Lineage: copies().Lineage}}
	s := newScene(t, copies(), answers{{Node: "n2", Copy: answer}, {Node: "n3", Copy: answer}})
	dies := s.lives("n1")
	for _, n := range nodes[1:] {
		defer s.lives(n)()
	}
	s.await("all nodes live", s.clock.Now(), func() bool { return s.clock.Since(s.clock.began) > 40*time.Second })
	if s.fenced() {
		t.Fatal("a living node was fenced")
	}
	dies()
	began := s.clock.Now()
	if took := s.await("silent -> fenced", began, s.fenced); took < ownership.SelfFenceAfter+ownership.SelfFenceMargin-6*time.Second {
		t.Errorf("it was fenced after %s", took)
	}
	s.await("silent -> the pod ended", began, s.podEnded)
	if !has(s, &corev1.Pod{}, "default", "waits") {
		t.Error("the pod of the standby was ended")
	}
	s.await("silent -> the record has been Fenced, once", began, func() bool {
		return slices.Equal(s.taken(), []string{"Fenced, losses 1, expires false"})
	})
}
