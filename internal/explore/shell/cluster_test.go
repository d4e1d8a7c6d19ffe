package shell

import (
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
)

const (
	// unready is for how long a kubelet may be silent before its Node counts as lost, and evicting for how long
	// before its pods are deleted, gracefully: they stay until the kubelet says that they have ended.
	unready  = 40 * time.Second
	evicting = 60 * time.Second
)

// kubernetes is a step of the cluster's own controllers: the workloads, the scheduler, and the one that watches
// the nodes. They have no faults.
func (w *world) kubernetes() {
	if w.api.down.Load() {
		return
	}
	w.nodes()
	for _, v := range w.volumes {
		pods := w.pods(v)
		if len(pods) < w.plan.pods() {
			w.counted++
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: fmt.Sprintf("%s-%d", v.short, w.counted), Labels: map[string]string{"volume": v.name}}}
			p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: v.short}}}}
			p.Status.Phase = corev1.PodPending
			w.makes(p)
			w.tells("cluster", "makes pod %s", p.Name)
		}
		for _, p := range pods {
			if p.Spec.NodeName == "" {
				w.schedules(v, p)
			}
		}
	}
}

// schedules binds a pod to a node from which its volume can be used.
func (w *world) schedules(v *volume, p *corev1.Pod) {
	var fit []string
	used := map[string]bool{}
	for _, other := range w.pods(v) {
		used[other.Spec.NodeName] = true
	}
	for _, o := range w.api.all(kindOf(&corev1.Node{})) {
		n := o.(*corev1.Node)
		if n.Labels[v1alpha1.VolumeLabelPrefix+v.name] == v1alpha1.VolumeLabelValue && ready(n) && len(n.Spec.Taints) == 0 && !used[n.Name] {
			fit = append(fit, n.Name)
		}
	}
	if len(fit) == 0 {
		return
	}
	d := rolled(w.seed, 0, "scheduler", string(p.UID))
	node := fit[d.below(len(fit))]
	if edit(w.api, client.ObjectKeyFromObject(p), func(p *corev1.Pod) { p.Spec.NodeName = node }) == nil {
		w.tells("cluster", "binds pod %s to node %s", p.Name, node)
	}
}

func ready(n *corev1.Node) bool { return n.Status.Conditions[0].Status == corev1.ConditionTrue }

// nodes is the controller that watches the kubelets' Leases.
func (w *world) nodes() {
	for _, m := range w.machines {
		if m.deleted.Load() {
			w.collects(m)
			continue
		}
		l := one[coordinationv1.Lease](w.api, client.ObjectKey{Namespace: corev1.NamespaceNodeLease, Name: m.name})
		silent := time.Since(l.Spec.RenewTime.Time)
		n := one[corev1.Node](w.api, client.ObjectKey{Name: m.name})
		if is := silent < unready; is != ready(n) {
			m.annotates(func(n *corev1.Node) {
				n.Status.Conditions[0].Status = corev1.ConditionUnknown
				if is {
					n.Status.Conditions[0].Status = corev1.ConditionTrue
				}
			})
		}
		if silent < evicting {
			continue
		}
		for _, v := range w.volumes {
			for _, p := range w.pods(v) {
				if p.Spec.NodeName == m.name && p.DeletionTimestamp == nil {
					_ = w.api.remove(nil, p)
				}
			}
		}
	}
}
