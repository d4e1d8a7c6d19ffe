package check_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/check"
)

// working is an installation with two controllers and agents on two nodes.
func working() check.Facts {
	var f check.Facts
	f.Controller.Name, f.Agents.Name = "berth-controller", "berth-agent"
	f.Controller.Status.Replicas, f.Controller.Status.ReadyReplicas = 2, 2
	f.Agents.Status.DesiredNumberScheduled, f.Agents.Status.NumberReady = 2, 2
	for _, name := range []string{"n1", "n2"} {
		node := v1alpha1.StorageNode{ObjectMeta: metav1.ObjectMeta{Name: name}}
		node.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}}
		pod := corev1.Pod{}
		pod.Spec.NodeName = name
		f.Pods = append(f.Pods, pod)
		kubelet := storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name}}
		kubelet.Spec.Drivers = []storagev1.CSINodeDriver{{Name: "other.example.org"}, {Name: v1alpha1.LocalDriverName}, {Name: v1alpha1.DiskDriverName}}
		f.Nodes, f.Kubelets = append(f.Nodes, node), append(f.Kubelets, kubelet)
	}
	return f
}

func TestAnInstallationThatWorksHasNoProblems(t *testing.T) {
	if got := check.Problems(working()); len(got) != 0 {
		t.Errorf("problems are %q", got)
	}
}

// shared adds guards and the programs of shared disks.
func shared(f check.Facts) check.Facts {
	f.Guards, f.Disk = &appsv1.DaemonSet{}, &check.Disk{Pods: f.Pods}
	f.Guards.Name, f.Disk.Controller.Name, f.Disk.Agents.Name = "berth-guard", "berth-disk-controller", "berth-disk-agent"
	f.Guards.Status, f.Disk.Agents.Status, f.Disk.Controller.Status = f.Agents.Status, f.Agents.Status, f.Controller.Status
	return f
}

func TestTheProgramsOfSharedDisksAreLookedAtWhereTheyAreInstalled(t *testing.T) {
	if got := check.Problems(shared(working())); len(got) != 0 {
		t.Errorf("problems are %q", got)
	}
	for want, spoil := range map[string]func(*check.Facts){
		"1 of 2 guards are ready, and the node of another one is fenced": func(f *check.Facts) { f.Guards.Status.NumberReady = 1 },
		"berth-guard has been changed":                                   func(f *check.Facts) { f.Guards.Generation = 2 },
		"0 of 2 disk controllers are ready":                              func(f *check.Facts) { f.Disk.Controller.Status.ReadyReplicas = 0 },
		"1 of 2 disk agents are ready":                                   func(f *check.Facts) { f.Disk.Agents.Status.NumberReady = 1 },
		"no node runs a disk agent":                                      func(f *check.Facts) { f.Disk.Agents.Status.DesiredNumberScheduled = 0 },
		"berth-disk-agent has been changed":                              func(f *check.Facts) { f.Disk.Agents.Generation = 2 },
		"the kubelet of node n2 does not know disk.berth.dev": func(f *check.Facts) {
			f.Kubelets[1].Spec.Drivers = f.Kubelets[1].Spec.Drivers[:2]
		},
	} {
		f := shared(working())
		spoil(&f)
		if got := check.Problems(f); len(got) != 1 || !strings.Contains(got[0], want) {
			t.Errorf("problems are %q, want one with %q", got, want)
		}
	}
}

func TestANodeOnWhichNoAgentRunsIsNoProblem(t *testing.T) {
	f := working()
	f.Nodes = append(f.Nodes, v1alpha1.StorageNode{ObjectMeta: metav1.ObjectMeta{Name: "left"}})
	f.Nodes[2].Status.Conditions = []metav1.Condition{away("its agent is gone")}
	if got := check.Problems(f); len(got) != 0 {
		t.Errorf("problems are %q", got)
	}
}

func TestEachProblemIsNamed(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil func(*check.Facts)
		want  string
	}{
		"a controller is not ready":        {func(f *check.Facts) { f.Controller.Status.ReadyReplicas = 1 }, "1 of 2 controllers"},
		"there is no controller":           {func(f *check.Facts) { f.Controller.Status.Replicas, f.Controller.Status.ReadyReplicas = 0, 0 }, "0 of 0 controllers"},
		"an agent is not ready":            {func(f *check.Facts) { f.Agents.Status.NumberReady = 1 }, "1 of 2 agents"},
		"no node is selected":              {func(f *check.Facts) { f.Agents.Status.DesiredNumberScheduled = 0 }, "no node runs an agent"},
		"an agent has reported nothing":    {func(f *check.Facts) { f.Nodes = f.Nodes[:1] }, "1 of 2 agents have reported"},
		"another node has reported before": {func(f *check.Facts) { f.Nodes[1].Name = "n3" }, "1 of 2 agents have reported"},
		"the controllers' status is old":   {func(f *check.Facts) { f.Controller.Generation = 2 }, "does not tell of that yet"},
		"the agents' status is old":        {func(f *check.Facts) { f.Agents.Generation = 2 }, "does not tell of that yet"},
		"a node has no condition":          {func(f *check.Facts) { f.Nodes[1].Status.Conditions = nil }, "node n2 is not ready: its agent has not reported"},
		"a node's tools do not answer":     {func(f *check.Facts) { f.Nodes[0].Status.Conditions[0] = away("no lvm") }, "node n1 is not ready: no lvm"},
		"a kubelet knows another driver":   {func(f *check.Facts) { f.Kubelets[0].Spec.Drivers = f.Kubelets[0].Spec.Drivers[:1] }, "kubelet of node n1"},
		"a node has no kubelet":            {func(f *check.Facts) { f.Kubelets = f.Kubelets[:1] }, "kubelet of node n2"},
	} {
		t.Run(name, func(t *testing.T) {
			f := working()
			tc.spoil(&f)
			if got := check.Problems(f); len(got) != 1 || !strings.Contains(got[0], tc.want) {
				t.Errorf("problems are %q, want one with %q", got, tc.want)
			}
		})
	}
}

func away(message string) metav1.Condition {
	return metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Message: message}
}
