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
	// Guards is nil where none are installed, and so is Disk.
	Guards *appsv1.DaemonSet
	Disk   *Disk
	// Nodes are all StorageNodes: each agent makes one, of its node's name. That of a node on
	// which no agent runs any more stays.
	Nodes []v1alpha1.StorageNode
	// Kubelets have the drivers that each node's kubelet knows.
	Kubelets []storagev1.CSINode
}

// Disk has the programs of shared disks.
type Disk struct {
	Controller appsv1.Deployment
	Agents     appsv1.DaemonSet
	// Pods of the agents.
	Pods []corev1.Pod
}

// Problems lists all that keeps the installation from working, in sentences for people. An
// installation that works has none.
func Problems(f Facts) []string {
	// The figures of an older generation are those of an installation that was there before.
	if f.Controller.Status.ObservedGeneration < f.Controller.Generation || f.Agents.Status.ObservedGeneration < f.Agents.Generation {
		return []string{fmt.Sprintf("Deployment %s or DaemonSet %s has been changed, and its status does not tell of that yet", f.Controller.Name, f.Agents.Name)}
	}
	all := notReady(&f.Controller, "controllers")
	nodes := f.withAgents()
	switch said, want := missing(&f.Agents, "an agent", "agents"), f.Agents.Status.DesiredNumberScheduled; {
	case len(said) > 0:
		all = append(all, said...)
	case len(nodes) < int(want):
		all = append(all, fmt.Sprintf("%d of %d agents have reported a StorageNode", len(nodes), want))
	}
	for i := range nodes {
		if problem := problemOf(&nodes[i], f.Kubelets); problem != "" {
			all = append(all, problem)
		}
	}
	if f.Guards != nil {
		all = append(all, guards(f.Guards)...)
	}
	if f.Disk != nil {
		all = append(all, f.Disk.problems(f.Kubelets)...)
	}
	return all
}

func notReady(d *appsv1.Deployment, what string) []string {
	if got, want := d.Status.ReadyReplicas, d.Status.Replicas; got < want || got == 0 {
		return []string{fmt.Sprintf("%d of %d %s are ready: see the pods of Deployment %s", got, want, what, d.Name)}
	}
	return nil
}

// missing says that agents of a kind are not ready.
func missing(d *appsv1.DaemonSet, one, what string) []string {
	switch got, want := d.Status.NumberReady, d.Status.DesiredNumberScheduled; {
	case want == 0:
		return []string{fmt.Sprintf("no node runs %s: DaemonSet %s selects none", one, d.Name)}
	case got < want:
		return []string{fmt.Sprintf("%d of %d %s are ready: see the pods of DaemonSet %s", got, want, what, d.Name)}
	}
	return nil
}

// guards are where the agents are, which say that no node runs one.
func guards(d *appsv1.DaemonSet) []string {
	if d.Status.ObservedGeneration < d.Generation {
		return []string{fmt.Sprintf("DaemonSet %s has been changed, and its status does not tell of that yet", d.Name)}
	}
	if got, want := d.Status.NumberReady, d.Status.DesiredNumberScheduled; got < want {
		return []string{fmt.Sprintf("%d of %d guards are ready, and the node of another one is fenced, or cannot renew its lease: see the pods of DaemonSet %s", got, want, d.Name)}
	}
	return nil
}

func (d *Disk) problems(kubelets []storagev1.CSINode) []string {
	if d.Controller.Status.ObservedGeneration < d.Controller.Generation || d.Agents.Status.ObservedGeneration < d.Agents.Generation {
		return []string{fmt.Sprintf("Deployment %s or DaemonSet %s has been changed, and its status does not tell of that yet", d.Controller.Name, d.Agents.Name)}
	}
	all := append(notReady(&d.Controller, "disk controllers"), missing(&d.Agents, "a disk agent", "disk agents")...)
	for i := range d.Pods {
		if node := d.Pods[i].Spec.NodeName; node != "" && !knows(kubelets, node, v1alpha1.DiskDriverName) {
			all = append(all, fmt.Sprintf("the kubelet of node %s does not know %s: see the log of pod %s", node, v1alpha1.DiskDriverName, d.Pods[i].Name))
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
	if !knows(kubelets, n.Name, v1alpha1.LocalDriverName) {
		return fmt.Sprintf("the kubelet of node %s does not know the driver: agent.kubeletDir may be another directory than the kubelet's", n.Name)
	}
	return ""
}

// knows says whether the kubelet of a node knows a driver.
func knows(kubelets []storagev1.CSINode, node, driver string) bool {
	return slices.ContainsFunc(kubelets, func(k storagev1.CSINode) bool {
		return k.Name == node && slices.ContainsFunc(k.Spec.Drivers, func(d storagev1.CSINodeDriver) bool { return d.Name == driver })
	})
}
