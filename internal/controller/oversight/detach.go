package oversight

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/podlife"
)

// detach is E6: it takes the volume off the volumes in use in the status of each Node that provably does not write it
// and whose kubelet does not say so. Kubernetes takes the VolumeAttachment off then, and lets the next node have one.
//
// The kubelet's list holds Kubernetes up for six minutes otherwise. To delete the VolumeAttachment in its place would
// take up to one minute, in which Kubernetes looks for those that are gone. Nothing depends on who is right about the
// list: no one may write because of a VolumeAttachment, and a kubelet that has the volume lists it again.
func detach(ctx context.Context, r *Reconciler, q *question) error {
	if r.Attacher == "" {
		return nil
	}
	nodes := unheard(q.facts.Record, q.pods, q.away)
	if len(nodes) == 0 {
		return nil
	}
	var attached storagev1.VolumeAttachmentList
	if err := r.Client.List(ctx, &attached, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing VolumeAttachments: %w", err)
	}
	for i := range attached.Items {
		a := &attached.Items[i]
		pv, node := a.Spec.Source.PersistentVolumeName, a.Spec.NodeName
		if a.Spec.Attacher != r.Attacher || pv == nil || *pv != q.pv || a.DeletionTimestamp != nil || !slices.Contains(nodes, node) {
			continue
		}
		if err := unlist(ctx, r, node, q.name); err != nil {
			return fmt.Errorf("taking volume %s off the volumes in use of node %s: %w", q.name, node, err)
		}
	}
	return nil
}

// unheard are the nodes that cannot write the volume and whose kubelets may not say so, in order: that of a fenced
// writer, and those that are away. While a pod of the volume is there, a node is none of them: Kubernetes would attach
// the volume for that pod again.
func unheard(v *ownership.Volume, pods []corev1.Pod, away map[string]bool) (nodes []string) {
	for _, w := range v.AllWriters() {
		if w.Primary.Phase == ownership.Fenced {
			nodes = append(nodes, w.Primary.Node)
		}
	}
	for node, is := range away {
		if is && !owns(v, node) {
			nodes = append(nodes, node)
		}
	}
	slices.Sort(nodes)
	return slices.DeleteFunc(slices.Compact(nodes), func(node string) bool {
		return slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.Spec.NodeName == node && !podlife.Ended(&p) })
	})
}

// unlist takes a volume off the volumes in use of a Node. The kubelet and Kubernetes write the status, too, so the
// version that was read must be the last one.
func unlist(ctx context.Context, r *Reconciler, node, handle string) error {
	inUse := corev1.UniqueVolumeName("kubernetes.io/csi/" + r.Attacher + "^" + handle)
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		n := &corev1.Node{}
		if err := r.read(ctx, types.NamespacedName{Name: node}, n); err != nil {
			return client.IgnoreNotFound(err)
		}
		before := n.DeepCopy()
		n.Status.VolumesInUse = slices.DeleteFunc(n.Status.VolumesInUse, func(v corev1.UniqueVolumeName) bool { return v == inUse })
		if len(n.Status.VolumesInUse) == len(before.Status.VolumesInUse) {
			return nil
		}
		err := r.Client.Status().Patch(ctx, n, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		if err == nil {
			log.FromContext(ctx).Info("volume taken off the volumes in use of a node", "node", node, "volume", handle)
		}
		return client.IgnoreNotFound(err)
	})
}
