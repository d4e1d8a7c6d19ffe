package check

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"berth.dev/berth/api/v1alpha1"
)

// Facts are what the API server says about an installation.
type Facts struct {
	Controller appsv1.Deployment
	Agents     appsv1.DaemonSet
	// Nodes are all StorageNodes: each agent makes one, of its node's name.
	Nodes []v1alpha1.StorageNode
	// Kubelets have the drivers that each node's kubelet knows.
	Kubelets []storagev1.CSINode
}

// Problems lists all that keeps the installation from working, in sentences for people. An
// installation that works has none.
func Problems(f Facts) []string {
	var all []string
	if got, want := f.Controller.Status.ReadyReplicas, f.Controller.Status.Replicas; got < want || got == 0 {
		all = append(all, fmt.Sprintf("%d of %d controllers are ready: see the pods of Deployment %s", got, want, f.Controller.Name))
	}
	switch got, want := f.Agents.Status.NumberReady, f.Agents.Status.DesiredNumberScheduled; {
	case want == 0:
		all = append(all, fmt.Sprintf("no node runs an agent: DaemonSet %s selects none", f.Agents.Name))
	case got < want:
		all = append(all, fmt.Sprintf("%d of %d agents are ready: see the pods of DaemonSet %s", got, want, f.Agents.Name))
	case len(f.Nodes) < int(want):
		all = append(all, fmt.Sprintf("%d of %d agents have reported a StorageNode", len(f.Nodes), want))
	}
	for i := range f.Nodes {
		if problem := problemOf(&f.Nodes[i], f.Kubelets); problem != "" {
			all = append(all, problem)
		}
	}
	return all
}

// problemOf tells what is wrong with one node, or nothing.
func problemOf(n *v1alpha1.StorageNode, kubelets []storagev1.CSINode) string {
	if !meta.IsStatusConditionTrue(n.Status.Conditions, v1alpha1.ConditionReady) {
		message := "its agent has not reported yet"
		if c := meta.FindStatusCondition(n.Status.Conditions, v1alpha1.ConditionReady); c != nil {
			message = c.Message
		}
		return fmt.Sprintf("node %s is not ready: %s", n.Name, message)
	}
	known := slices.ContainsFunc(kubelets, func(k storagev1.CSINode) bool {
		return k.Name == n.Name && slices.ContainsFunc(k.Spec.Drivers, func(d storagev1.CSINodeDriver) bool {
			return d.Name == v1alpha1.LocalDriverName
		})
	})
	if !known {
		return fmt.Sprintf("the kubelet of node %s does not know the driver: agent.kubeletDir may be another directory than the kubelet's", n.Name)
	}
	return ""
}
