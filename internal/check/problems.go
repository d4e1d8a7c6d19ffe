package check

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"berth.dev/berth/api/v1alpha1"
)

// Facts are what the API server says about an installation.
type Facts struct {
	Controller appsv1.Deployment
	Agents     appsv1.DaemonSet
	// Pods of the agents.
	Pods []corev1.Pod
	// Nodes are all StorageNodes: each agent makes one, of its node's name. That of a node on
	// which no agent runs any more stays.
	Nodes []v1alpha1.StorageNode
	// Kubelets have the drivers that each node's kubelet knows.
	Kubelets []storagev1.CSINode
}

// Problems lists all that keeps the installation from working, in sentences for people. An
// installation that works has none.
func Problems(f Facts) []string {
	var all []string
	// The figures of an older generation are those of an installation that was there before.
	if f.Controller.Status.ObservedGeneration < f.Controller.Generation || f.Agents.Status.ObservedGeneration < f.Agents.Generation {
		return []string{fmt.Sprintf("Deployment %s or DaemonSet %s has been changed, and its status does not tell of that yet", f.Controller.Name, f.Agents.Name)}
	}
	nodes := f.withAgents()
	if got, want := f.Controller.Status.ReadyReplicas, f.Controller.Status.Replicas; got < want || got == 0 {
		all = append(all, fmt.Sprintf("%d of %d controllers are ready: see the pods of Deployment %s", got, want, f.Controller.Name))
	}
	switch got, want := f.Agents.Status.NumberReady, f.Agents.Status.DesiredNumberScheduled; {
	case want == 0:
		all = append(all, fmt.Sprintf("no node runs an agent: DaemonSet %s selects none", f.Agents.Name))
	case got < want:
		all = append(all, fmt.Sprintf("%d of %d agents are ready: see the pods of DaemonSet %s", got, want, f.Agents.Name))
	case len(nodes) < int(want):
		all = append(all, fmt.Sprintf("%d of %d agents have reported a StorageNode", len(nodes), want))
	}
	for i := range nodes {
		if problem := problemOf(&nodes[i], f.Kubelets); problem != "" {
			all = append(all, problem)
		}
	}
	return all
}

// withAgents returns the StorageNodes of the nodes on which agents run.
func (f Facts) withAgents() []v1alpha1.StorageNode {
	var nodes []v1alpha1.StorageNode
	for i := range f.Nodes {
		if slices.ContainsFunc(f.Pods, func(p corev1.Pod) bool { return p.Spec.NodeName == f.Nodes[i].Name }) {
			nodes = append(nodes, f.Nodes[i])
		}
	}
	return nodes
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
