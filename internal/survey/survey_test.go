package survey_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/schedule"
	"berth.dev/berth/internal/survey"
)

const gi = int64(1) << 30

// silent maps silent nodes to the reason.
type silent map[string]string

func (s silent) Away(node string) string { return s[node] }
func (silent) Notify(func(string))       {}

func ready(status metav1.ConditionStatus, message string) metav1.Condition {
	return metav1.Condition{Type: v1alpha1.ConditionReady, Status: status, Message: message, Reason: "Reporting"}
}

// well is a cluster of two nodes on which all is well: a volume of 4Gi on n1, which a pod uses.
func well() (survey.Cluster, survey.Programs, silent) {
	l := &schedule.Lists{Driver: driver.Local()}
	for _, name := range []string{"n2", "n1"} {
		n := v1alpha1.StorageNode{ObjectMeta: metav1.ObjectMeta{Name: name}}
		n.Status.Conditions = []metav1.Condition{ready(metav1.ConditionTrue, "")}
		n.Status.Pools = []v1alpha1.Pool{{
			Name: "vg0", Provisioner: v1alpha1.ProvisionerLVM, Health: v1alpha1.PoolHealthy, Classes: []string{"fast"},
			Total: *resource.NewQuantity(10*gi, resource.BinarySI), Foreign: *resource.NewQuantity(gi, resource.BinarySI),
			AllocationUnit: resource.MustParse("4Mi"),
		}}
		l.StorageNodes = append(l.StorageNodes, n)
	}
	l.PoolClasses = []v1alpha1.PoolClass{{ObjectMeta: metav1.ObjectMeta{Name: "fast"}, Spec: v1alpha1.PoolClassSpec{
		Provisioner: v1alpha1.ProvisionerLVM, LVM: &v1alpha1.LVMPools{VolumeGroups: []string{"vg0"}}}}}
	l.StorageClasses = []storagev1.StorageClass{{
		ObjectMeta: metav1.ObjectMeta{Name: "local"}, Provisioner: v1alpha1.LocalDriverName,
		VolumeBindingMode: new(storagev1.VolumeBindingWaitForFirstConsumer), Parameters: map[string]string{"poolClass": "fast"},
	}}
	v := v1alpha1.Volume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-0f3c1c9e-1d2b-4c3d-8e4f-5a6b7c8d9e0f"}}
	v.Spec = v1alpha1.VolumeSpec{
		Capacity: resource.MustParse("4Gi"), PoolClass: "fast", Replicas: []v1alpha1.ReplicaSpec{{Node: "n1", Pool: "vg0"}},
		ClaimRef: &v1alpha1.ClaimReference{Namespace: "shop", Name: "data"},
	}
	v.Status.Replicas = []v1alpha1.ReplicaStatus{{
		Node: "n1", Pool: "vg0", State: v1alpha1.ReplicaReady, Ready: true,
		Capacity: new(resource.MustParse("4Gi")), Allocated: new(resource.MustParse("4Gi")),
	}}
	l.Volumes = []v1alpha1.Volume{v}
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"}}
	pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	l.Pods = []corev1.Pod{pod}

	p := survey.Programs{Namespace: "berth-system"}
	for _, component := range survey.Components {
		p.All = append(p.All, survey.Program{Component: component.Name, Pods: survey.Count{Good: 2, Of: 2}})
	}
	away := silent{}
	return survey.Cluster{Lists: l, Heartbeats: away}, p, away
}

func TestTheRowsSayHowEachThingStands(t *testing.T) {
	c, _, _ := well()
	if diff := cmp.Diff([]survey.Node{
		{Name: "n1", State: "Ready", Pools: 1, Total: 10 * gi, Used: 5 * gi, Volumes: 1},
		{Name: "n2", State: "Ready", Pools: 1, Total: 10 * gi, Used: gi},
	}, c.NodeRows()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]survey.Pool{
		{Node: "n1", Name: "vg0", Type: "LVM", Health: "Healthy", Total: 10 * gi, Used: 5 * gi, Foreign: gi, Volumes: 1, Classes: []string{"fast"}},
		{Node: "n2", Name: "vg0", Type: "LVM", Health: "Healthy", Total: 10 * gi, Used: gi, Foreign: gi, Classes: []string{"fast"}},
	}, c.PoolRows()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]survey.Volume{{
		Namespace: "shop", Claim: "data", Name: c.Volumes[0].Name, State: "Ready", Size: 4 * gi, Class: "fast",
		Nodes: []string{"n1"}, Pools: []string{"vg0"}, Pods: []string{"db"},
	}}, c.VolumeRows()); diff != "" {
		t.Error(diff)
	}
}

func TestWhereAllIsWellThereIsNoProblem(t *testing.T) {
	c, p, _ := well()
	s := c.Status(p)
	if len(s.Problems) != 0 {
		t.Errorf("problems are %q", s.Problems)
	}
	if s.Fullest == nil || s.Fullest.Node != "n1" || s.Used != 6*gi || s.Total != 20*gi || s.Volumes != (survey.Count{Good: 1, Of: 1}) {
		t.Errorf("the status is %+v", s)
	}
}

// spoilt sets how many pods of a component are ready.
func spoilt(component string, pods survey.Count) func(*survey.Cluster, *survey.Programs, silent) {
	return func(_ *survey.Cluster, p *survey.Programs, _ silent) {
		for i := range p.All {
			if p.All[i].Component == component {
				p.All[i].Pods = pods
			}
		}
	}
}

func TestProgramsThatAreNotInstalledAreNeitherAProblemNorInTheDocument(t *testing.T) {
	c, p, _ := well()
	p.All = p.All[:2]
	s := c.Status(p)
	document, err := json.Marshal(s)
	if err != nil || len(s.Problems) != 0 || strings.Contains(string(document), "guards") || strings.Contains(string(document), "disk") {
		t.Errorf("%v: %s", err, document)
	}
	// A DaemonSet that no node is chosen for is at its work.
	p.All = append(p.All, survey.Program{Component: survey.Guard, Once: true})
	if s := c.Status(p); len(s.Problems) != 0 || s.Guards == nil {
		t.Errorf("%+v", s)
	}
}

func TestEachProblemIsToldWithAWayOn(t *testing.T) {
	claim := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "new"}}
	claim.Spec.StorageClassName = new("local")
	for name, tc := range map[string]struct {
		spoil func(c *survey.Cluster, p *survey.Programs, away silent)
		want  string
	}{
		"no controller is found": {func(_ *survey.Cluster, p *survey.Programs, _ silent) { p.All = p.All[1:] }, "no controller in namespace berth-system"},
		"no agents are found":    {func(_ *survey.Cluster, p *survey.Programs, _ silent) { p.All = p.All[:1] }, "no agents in namespace berth-system"},
		"a controller is not ready": {spoilt(survey.Controller, survey.Count{Good: 1, Of: 2}),
			"1 of 2 controllers are ready: see kubectl get pods -n berth-system -l app.kubernetes.io/component=controller -o wide"},
		"no pod of a controller is made": {spoilt(survey.Controller, survey.Count{}), "0 of 0 controllers are ready"},
		"an agent is not ready":          {spoilt(survey.Agent, survey.Count{Good: 1, Of: 2}), "1 of 2 agents are ready"},
		"a scheduler is not ready":       {spoilt(survey.Scheduler, survey.Count{Good: 1, Of: 2}), "1 of 2 schedulers are ready"},
		"the disk controllers are down":  {spoilt(survey.DiskController, survey.Count{Of: 2}), "0 of 2 disk controllers are ready"},
		"a disk agent is down":           {spoilt(survey.DiskAgent, survey.Count{Good: 1, Of: 2}), "component=disk-agent"},
		"a guard is fenced":              {spoilt(survey.Guard, survey.Count{Good: 1, Of: 2}), "the node of another one is fenced, or cannot renew its lease"},
		"a node is silent":               {func(_ *survey.Cluster, _ *survey.Programs, away silent) { away["n2"] = "the Node is not ready" }, "node n2 is Away: the Node is not ready"},
		"a node's tools fail": {func(c *survey.Cluster, _ *survey.Programs, _ silent) {
			c.StorageNodes[0].Status.Conditions[0] = ready(metav1.ConditionFalse, "no lvm")
		}, "node n2 is NotReady: no lvm"},
		"a thin pool fills": {func(c *survey.Cluster, _ *survey.Programs, _ silent) {
			c.StorageNodes[0].Status.Conditions = append(c.StorageNodes[0].Status.Conditions,
				metav1.Condition{Type: v1alpha1.ConditionFilling, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonThinPoolFilling, Message: "vg0/thin is 85 % full"})
		}, "node n2, ThinPoolFilling: vg0/thin is 85 % full"},
		"a managed pool differs": {func(c *survey.Cluster, _ *survey.Programs, _ silent) {
			c.StorageNodes[0].Status.Conditions = append(c.StorageNodes[0].Status.Conditions,
				metav1.Condition{Type: v1alpha1.ConditionPoolsManaged, Status: metav1.ConditionFalse, Reason: "NoDisk", Message: "vg1 has no disk"})
		}, "node n2, NoDisk: vg1 has no disk"},
		"a pool is missing": {func(c *survey.Cluster, _ *survey.Programs, _ silent) {
			c.StorageNodes[1].Status.Pools[0].Health, c.StorageNodes[1].Status.Pools[0].Message = v1alpha1.PoolMissing, "a disk is away"
		}, "pool vg0 of node n1 is Missing: a disk is away"},
		"a volume's device is gone": {func(c *survey.Cluster, _ *survey.Programs, _ silent) {
			c.Volumes[0].Status.Replicas[0].State, c.Volumes[0].Status.Replicas[0].Message = v1alpha1.ReplicaFailed, "its device is gone"
		}, "of claim shop/data is Failed: its device is gone"},
		"no node would take a shared disk over": {func(c *survey.Cluster, _ *survey.Programs, _ silent) {
			*c = shared(*c, func(v *v1alpha1.Volume) { v.Status.Ownership.Replicas[0].State = v1alpha1.OwnedSyncing })
		}, "of claim shop/demo has no standby that is ready: kubectl berth replicas " + disk + " says why"},
		"a claim of a pod waits": {func(c *survey.Cluster, _ *survey.Programs, _ silent) {
			c.Claims = append(c.Claims, claim)
			pod := c.Pods[0].DeepCopy()
			pod.Spec.Volumes[0].PersistentVolumeClaim.ClaimName = "new"
			c.Pods = append(c.Pods, *pod)
		}, "kubectl berth explain pvc new -n shop"},
		"data has no object": {func(c *survey.Cluster, _ *survey.Programs, _ silent) {
			c.StorageNodes[0].Status.Pools[0].Inventory = []v1alpha1.InventoryItem{{
				Volume: "pvc-0f3c1c9e-1d2b-4c3d-8e4f-5a6b7c8d9e10", Allocated: resource.MustParse("1Gi"), Orphan: &v1alpha1.Orphan{Reason: v1alpha1.OrphanNoObject},
			}}
		}, "kubectl berth orphans"},
	} {
		t.Run(name, func(t *testing.T) {
			c, p, away := well()
			tc.spoil(&c, &p, away)
			if s := c.Status(p); len(s.Problems) != 1 || !strings.Contains(s.Problems[0], tc.want) {
				t.Errorf("problems are %q, want one with %q", s.Problems, tc.want)
			}
		})
	}
}

func TestAClaimThatWaitsForItsFirstPodIsNoProblem(t *testing.T) {
	c, p, _ := well()
	claim := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "new"}}
	claim.Spec.StorageClassName = new("local")
	c.Claims = append(c.Claims, claim)
	if s := c.Status(p); s.Waiting != 0 || len(s.Problems) != 0 {
		t.Errorf("%d claims wait: %q", s.Waiting, s.Problems)
	}
	c.StorageClasses[0].VolumeBindingMode = new(storagev1.VolumeBindingImmediate)
	if s := c.Status(p); s.Waiting != 1 {
		t.Errorf("%d claims of a class that binds at once wait", s.Waiting)
	}
}

func TestThePercentageOfAHugePoolDoesNotOverflow(t *testing.T) {
	c, _, _ := well()
	huge := &c.StorageNodes[0].Status.Pools[0]
	huge.Total, huge.Filled = *resource.NewQuantity(1<<62, resource.BinarySI), resource.NewQuantity(1<<61, resource.BinarySI)
	for _, p := range c.PoolRows() {
		if p.Node == "n2" && (p.FilledPercent == nil || *p.FilledPercent < 49 || *p.FilledPercent > 50) {
			t.Errorf("half of a huge pool is not 50 percent: %+v", p)
		}
	}
}
