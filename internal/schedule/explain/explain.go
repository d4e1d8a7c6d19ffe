package explain

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"berth.dev/berth/internal/ledger"
	"berth.dev/berth/internal/schedule"
)

// Report is the answer about one pod.
type Report struct {
	// Volumes of the pod; nil if none is Berth's.
	Volumes *schedule.PodVolumes
	// Nodes in order, those that fit first. Nodes that serve none of the classes
	// are counted and not listed.
	Nodes  []Node
	Unused int
}

// Node is one node's answer.
type Node struct {
	ledger.Explanation
	// Away is empty, or says why the node cannot answer.
	Away string
}

// Cluster is the cluster that is explained.
type Cluster struct {
	*schedule.Lists
	Heartbeats schedule.Heartbeats
}

// Pod explains a pod.
func (c Cluster) Pod(ctx context.Context, pod *corev1.Pod) (Report, error) {
	v, err := schedule.Reader{Driver: c.Driver, Objects: c.Lists}.Read(ctx, pod)
	if err != nil || v == nil || len(v.Wanted) == 0 {
		return Report{Volumes: v}, err
	}
	book := c.Book(c.Heartbeats)
	r, _ := book.Request(ledger.RequestOptions{Pod: string(pod.UID)}, v.Demands()...)
	out := Report{Volumes: v}
	for _, name := range book.NodeNames() {
		x := book.Node(name).Explain(r)
		if x.Verdict.Reason == ledger.NotServed || x.Verdict.Reason == ledger.NotReported {
			out.Unused++
			continue
		}
		out.Nodes = append(out.Nodes, Node{x, c.Heartbeats.Away(name)})
	}
	slices.SortStableFunc(out.Nodes, func(a, b Node) int { return order(a) - order(b) })
	return out, nil
}

func order(n Node) int {
	if n.Verdict.Fits() {
		return 0
	}
	return 1
}

// Claim explains a claim as if a pod used it alone.
func (c Cluster) Claim(ctx context.Context, namespace, name string) (Report, error) {
	claim, err := c.Lists.Claim(ctx, namespace, name)
	if err != nil {
		return Report{}, err
	}
	if claim == nil {
		return Report{}, fmt.Errorf("claim %s/%s does not exist", namespace, name)
	}
	pod := &corev1.Pod{}
	pod.Namespace = namespace
	pod.Spec.Volumes = []corev1.Volume{{Name: name, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
	}}}
	return c.Pod(ctx, pod)
}
