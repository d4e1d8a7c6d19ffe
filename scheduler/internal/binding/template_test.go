package binding

import (
	"context"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	fwk "k8s.io/kube-scheduler/framework"
	backendcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultbinder"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/queuesort"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	testframework "k8s.io/kubernetes/pkg/scheduler/testing/framework"
	"sigs.k8s.io/yaml"

	"berth.dev/berth/api/v1alpha1"
)

// templateNode is the label that cluster-autoscaler gives each node that it only imagines.
const templateNode = "cluster-autoscaler.kubernetes.io/template-node"

// chartCapacity is what the chart of the classes makes of an entry of templateCapacities.
func chartCapacity(t *testing.T) *storagev1.CSIStorageCapacity {
	t.Helper()
	rendered, err := os.ReadFile("../../../test/chart/testdata/classes.golden.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(string(rendered), "\n---\n") {
		if strings.Contains(document, "kind: CSIStorageCapacity\n") {
			c := &storagev1.CSIStorageCapacity{}
			if err := yaml.UnmarshalStrict([]byte(document), c); err != nil {
				t.Fatal(err)
			}
			return c
		}
	}
	t.Fatal("the chart makes no capacity")
	return nil
}

// agentCapacity is what the agent of a node publishes.
func agentCapacity(node string, room resource.Quantity) *storagev1.CSIStorageCapacity {
	return &storagev1.CSIStorageCapacity{
		ObjectMeta: metav1.ObjectMeta{Namespace: "berth-system", Name: "berth-" + node}, StorageClassName: "fast",
		NodeTopology: &metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.TopologyKey: node}},
		Capacity:     &room, MaximumVolumeSize: &room,
	}
}

// stock is a profile with VolumeBinding alone, as cluster-autoscaler asks it about a node that it imagines. The
// cluster has a full node "full".
func stock(t *testing.T, claim *corev1.PersistentVolumeClaim, imagined *corev1.Node) framework.Framework {
	t.Helper()
	client := fake.NewClientset(claim, waiting("fast", v1alpha1.LocalDriverName), chartCapacity(t), agentCapacity("full", resource.MustParse("1Gi")),
		&storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.LocalDriverName}, Spec: storagev1.CSIDriverSpec{StorageCapacity: new(true)}})
	factory := informers.NewSharedInformerFactory(client, 0)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	f, err := testframework.NewFramework(ctx, []testframework.RegisterPluginFunc{
		testframework.RegisterQueueSortPlugin(queuesort.Name, queuesort.New),
		testframework.RegisterBindPlugin(defaultbinder.Name, defaultbinder.New),
		testframework.RegisterPluginAsExtensions(volumebinding.Name, func(ctx context.Context, _ runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
			args, err := decode(nil)
			if err != nil {
				return nil, err
			}
			return volumebinding.New(ctx, args, handle, feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate))
		}, "PreFilter", "Filter"),
	}, "default-scheduler", frameworkruntime.WithClientSet(client), frameworkruntime.WithInformerFactory(factory),
		frameworkruntime.WithSnapshotSharedLister(backendcache.NewSnapshot(nil, []*corev1.Node{imagined})))
	if err != nil {
		t.Fatal(err)
	}
	factory.Start(ctx.Done())
	t.Cleanup(func() { stop(); factory.Shutdown() })
	factory.WaitForCacheSync(ctx.Done())
	return f
}

// As docs/autoscaler.md says, for the object that the chart makes.
func TestAClusterAutoscalerSeesWhatANewNodeOfAGroupWouldHave(t *testing.T) {
	for name, tc := range map[string]struct {
		labels map[string]string
		asks   string
		fits   bool
	}{
		"a new node of a group without nodes":                             {map[string]string{templateNode: "true", "disks": "nvme"}, "500Gi", true},
		"a new node that is imagined as a copy of the full node":          {map[string]string{templateNode: "true", "disks": "nvme", v1alpha1.TopologyKey: "full"}, "500Gi", true},
		"a claim that is larger than a new node":                          {map[string]string{templateNode: "true", "disks": "nvme"}, "901Gi", false},
		"a new node of a group without disks":                             {map[string]string{templateNode: "true"}, "500Gi", false},
		"the full node itself":                                            {map[string]string{"disks": "nvme", v1alpha1.TopologyKey: "full"}, "500Gi", false},
		"a node that has joined, and its agent has published nothing yet": {map[string]string{"disks": "nvme", v1alpha1.TopologyKey: "joined"}, "500Gi", false},
	} {
		t.Run(name, func(t *testing.T) {
			claim := claimOf("data", "fast", func(c *corev1.PersistentVolumeClaim) {
				c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(tc.asks)}
			})
			imagined := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "imagined", Labels: tc.labels}}
			f := stock(t, claim, imagined)
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "p", UID: "p"}}
			pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name}}}}
			state := framework.NewCycleState()
			if _, status, _ := f.RunPreFilterPlugins(t.Context(), state, pod); !status.IsSuccess() {
				t.Fatal(status)
			}
			info := framework.NewNodeInfo()
			info.SetNode(imagined)
			if status := f.RunFilterPlugins(t.Context(), state, pod, info); status.IsSuccess() != tc.fits {
				t.Errorf("it fits: %v (%v)", status.IsSuccess(), status)
			}
		})
	}
}
