package binding

import (
	"context"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/component-helpers/storage/volume"
	fwk "k8s.io/kube-scheduler/framework"
	backendcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultbinder"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/queuesort"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	testframework "k8s.io/kubernetes/pkg/scheduler/testing/framework"

	"berth.dev/berth/api/v1alpha1"
)

func TestMain(m *testing.M) {
	metrics.Register()
	os.Exit(m.Run())
}

// profile is a scheduler's profile with the plugin, on the nodes n1 and n2.
type profile struct {
	framework.Framework
	plugin *Plugin
	nodes  []*corev1.Node
	pod    *corev1.Pod
}

// newProfile has a pod that names these claims, and a claim "templated" for its
// generic ephemeral volume.
func newProfile(t *testing.T, available bool, claims ...*corev1.PersistentVolumeClaim) *profile {
	t.Helper()
	p := &profile{nodes: []*corev1.Node{node("n1"), node("n2")}, pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "p", UID: "p"}}}
	narrow := waiting("narrow", v1alpha1.LocalDriverName)
	narrow.AllowedTopologies = []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: v1alpha1.TopologyKey, Values: []string{"n1"}}}}}
	objects := []runtime.Object{p.nodes[0], p.nodes[1], waiting("ours", v1alpha1.LocalDriverName), waiting("theirs", "example.com/other"), narrow}
	for _, claim := range claims {
		objects = append(objects, claim)
		source := corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name}}
		if claim.Name == "p-templated" {
			source = corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}
			claim.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(p.pod, corev1.SchemeGroupVersion.WithKind("Pod"))}
		}
		p.pod.Spec.Volumes = append(p.pod.Spec.Volumes, corev1.Volume{Name: "templated", VolumeSource: source})
	}
	client := fake.NewClientset(objects...)
	factory := informers.NewSharedInformerFactory(client, 0)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var err error
	p.Framework, err = testframework.NewFramework(ctx, []testframework.RegisterPluginFunc{
		testframework.RegisterQueueSortPlugin(queuesort.Name, queuesort.New),
		testframework.RegisterBindPlugin(defaultbinder.Name, defaultbinder.New),
		testframework.RegisterPluginAsExtensions(Name, func(ctx context.Context, _ runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
			var err error
			p.plugin, err = New(ctx, nil, handle, func(string) bool { return available })
			return p.plugin, err
		}, "PreFilter", "Filter", "PreScore", "Score", "Reserve", "PreBind"),
	}, "berth-scheduler", frameworkruntime.WithClientSet(client), frameworkruntime.WithInformerFactory(factory),
		frameworkruntime.WithSnapshotSharedLister(backendcache.NewSnapshot(nil, p.nodes)))
	if err != nil {
		t.Fatal(err)
	}
	factory.Start(ctx.Done())
	t.Cleanup(func() { stop(); factory.Shutdown() })
	factory.WaitForCacheSync(ctx.Done())
	return p
}

func waiting(name, driver string) *storagev1.StorageClass {
	c := class(name, driver)
	c.VolumeBindingMode = new(storagev1.VolumeBindingWaitForFirstConsumer)
	return c
}

func claimOf(name, class string, change ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name), ResourceVersion: "1"},
		Spec:       corev1.PersistentVolumeClaimSpec{StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}},
	}
	for _, f := range change {
		f(claim)
	}
	return claim
}

func (p *profile) info(i int) fwk.NodeInfo {
	info := framework.NewNodeInfo()
	info.SetNode(p.nodes[i])
	return info
}

func TestNodesAreLookedAtOnlyWhereTheyDiffer(t *testing.T) {
	selected := func(c *corev1.PersistentVolumeClaim) { c.Annotations = map[string]string{volume.AnnSelectedNode: "n1"} }
	tests := map[string]struct {
		claims    []*corev1.PersistentVolumeClaim
		available bool
		looks     bool
	}{
		"no claims":                                   {},
		"a claim that Berth provisions":               {claims: []*corev1.PersistentVolumeClaim{claimOf("a", "ours")}},
		"several of them":                             {claims: []*corev1.PersistentVolumeClaim{claimOf("a", "ours"), claimOf("b", "ours")}},
		"a generic ephemeral volume":                  {claims: []*corev1.PersistentVolumeClaim{claimOf("p-templated", "ours")}},
		"a claim of another driver":                   {claims: []*corev1.PersistentVolumeClaim{claimOf("a", "theirs")}, looks: true},
		"a claim of another driver beside Berth's":    {claims: []*corev1.PersistentVolumeClaim{claimOf("a", "ours"), claimOf("b", "theirs")}, looks: true},
		"a claim that has its node":                   {claims: []*corev1.PersistentVolumeClaim{claimOf("a", "ours", selected)}, looks: true},
		"a class that allows some nodes":              {claims: []*corev1.PersistentVolumeClaim{claimOf("a", "narrow")}, looks: true},
		"a class with a volume that a claim may take": {claims: []*corev1.PersistentVolumeClaim{claimOf("a", "ours")}, available: true, looks: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := newProfile(t, test.available, test.claims...)
			state := framework.NewCycleState()
			if _, status, _ := p.RunPreFilterPlugins(t.Context(), state, p.pod); !status.IsSuccess() {
				t.Fatal(status)
			}
			if skipped := state.GetSkipFilterPlugins().Has(Name); skipped == test.looks {
				t.Fatalf("Filter is skipped: %v", skipped)
			}
			if test.looks {
				return
			}
			for i := range p.nodes {
				if status := p.plugin.PreScore(t.Context(), state, p.pod, nil); !status.IsSkip() {
					t.Errorf("nodes are scored: %v", status)
				}
				if len(test.claims) > 0 && !p.plugin.Filter(t.Context(), state, p.pod, p.info(i)).IsSuccess() {
					t.Errorf("node %d would have been refused", i)
				}
			}
		})
	}
}

func TestReserveWorksOutTheBindingsWhereFilterWasSkipped(t *testing.T) {
	p := newProfile(t, false, claimOf("a", "ours"), claimOf("b", "ours"))
	state := framework.NewCycleState()
	if _, status, _ := p.RunPreFilterPlugins(t.Context(), state, p.pod); !status.IsSuccess() {
		t.Fatal(status)
	}
	if status := p.RunReservePluginsReserve(t.Context(), state, p.pod, "n2"); !status.IsSuccess() {
		t.Fatal(status)
	}
	if _, status := p.plugin.PreBindPreFlight(t.Context(), state, p.pod, "n2"); !status.IsSuccess() {
		t.Errorf("nothing is to be written: %v", status)
	}
	// Another pod of the same claims, in flight at the same time, may go there alone.
	other := p.pod.DeepCopy()
	other.Name, other.UID = "q", "q"
	again := framework.NewCycleState()
	if _, status, _ := p.RunPreFilterPlugins(t.Context(), again, other); !status.IsSuccess() {
		t.Fatal(status)
	}
	if status := p.RunReservePluginsReserve(t.Context(), again, other, "n1"); !status.IsRejected() {
		t.Errorf("the claims' node is n2, and n1 is reserved: %v", status)
	}
}
