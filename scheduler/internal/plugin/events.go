package plugin

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/util"

	"berth.dev/berth/internal/ledger"
	"berth.dev/berth/internal/schedule"
)

// EventsToRegister says which objects of Kubernetes may help a pod that was
// refused here. Berth's own are not among them: see Refusals.
//
// It is called when all profiles are complete and may keep the scheduler from
// starting, so the order of plugins is checked here.
func (p *Plugin) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	if p.Order != nil {
		if err := p.Order(); err != nil {
			return nil, err
		}
	}
	w := waking{p.Book, p.Reader, p.Refusals, p.Lifetime}
	on := func(resource fwk.EventResource, action fwk.ActionType, hint func(event) (bool, error)) fwk.ClusterEventWithHint {
		return fwk.ClusterEventWithHint{Event: fwk.ClusterEvent{Resource: resource, ActionType: action}, QueueingHintFn: asHint(hint)}
	}
	return []fwk.ClusterEventWithHint{
		// Kubernetes 1.36 has no event of placed pods alone.
		on(fwk.Pod, fwk.Delete, w.afterPod),
		on(fwk.PersistentVolumeClaim, fwk.Add|fwk.Update, w.afterClaim),
		on(fwk.PersistentVolume, fwk.Add|fwk.Update, w.afterPersistentVolume),
		on(fwk.StorageClass, fwk.Add|fwk.Update, w.afterStorageClass),
		on(fwk.Node, fwk.Add, w.afterNode),
	}, nil
}

// event is something that happened while a pod waits.
type event struct {
	pod      *corev1.Pod
	old, new any
}

// asHint makes a hint of a function that says whether to try again. Errors wake
// the pod up: trying in vain is harmless, waiting in vain is not.
func asHint(again func(event) (bool, error)) fwk.QueueingHintFn {
	return func(_ klog.Logger, pod *corev1.Pod, old, obj any) (fwk.QueueingHint, error) {
		yes, err := again(event{pod, old, obj})
		if yes || err != nil {
			return fwk.Queue, err
		}
		return fwk.QueueSkip, nil
	}
}

// Fits is whether a pod fits on one of the nodes as the ledger knows them now.
func Fits(ctx context.Context, book Book, reader Reader, pod *corev1.Pod, nodes ...string) (bool, error) {
	want, err := reader.Read(ctx, pod)
	switch {
	case err != nil:
		return false, err
	case want == nil:
		return true, nil
	}
	return fits(book, want, pod, nodes), nil
}

func fits(book Book, want *schedule.PodVolumes, pod *corev1.Pod, nodes []string) bool {
	if want.Unready != "" {
		return false
	}
	request, verdict := book.Request(ledger.RequestOptions{Pod: uid(pod)}, want.Demands()...)
	return verdict.Fits() && slices.ContainsFunc(nodes, func(node string) bool { return book.Node(node).Fit(request).Fits() })
}

// waking decides which events wake a pod that was refused.
type waking struct {
	book     Book
	reader   Reader
	refusals *Refusals
	// lifetime is the scheduler's. Hints are called without a context.
	lifetime context.Context
}

// afterPod: a pod has gone, or one that was placed is given up. The room of the
// latter is given back by now, and a claim that both pods name is held nowhere any
// more.
func (w waking) afterPod(e event) (bool, error) {
	gone, _, err := util.As[*corev1.Pod](e.old, nil)
	if err != nil {
		return true, err
	}
	if len(gone.Spec.Volumes) == 0 {
		return false, nil
	}
	for i := range gone.Spec.Volumes {
		if name := schedule.ClaimName(gone, &gone.Spec.Volumes[i]); name != "" && uses(e.pod, gone.Namespace, name) {
			return true, nil
		}
	}
	return Fits(w.lifetime, w.book, w.reader, e.pod, gone.Spec.NodeName)
}

func (w waking) afterClaim(e event) (bool, error) {
	_, claim, err := util.As[*corev1.PersistentVolumeClaim](e.old, e.new)
	if err != nil {
		return true, err
	}
	return w.needs(e.pod, claim.Namespace, claim.Name)
}

// needs is whether a pod names a claim, or one that is to be made from it.
func (w waking) needs(pod *corev1.Pod, namespace, claim string) (bool, error) {
	if uses(pod, namespace, claim) {
		return true, nil
	}
	if pod.Namespace != namespace || !w.refusals.isSourced(pod) {
		return false, nil
	}
	want, err := w.reader.Read(w.lifetime, pod)
	if want == nil || err != nil {
		return true, err
	}
	return slices.ContainsFunc(want.Sources, func(s *schedule.Source) bool { return s.OfClaim(claim) }), nil
}

// afterPersistentVolume: the volume that a claim names has appeared, or one that
// a claim could match. It can be matched only once its phase says Available, which
// is written after it was made, or when it was taken from its last claim.
func (w waking) afterPersistentVolume(e event) (bool, error) {
	_, pv, err := util.As[*corev1.PersistentVolume](e.old, e.new)
	if err != nil {
		return true, err
	}
	if claim := pv.Spec.ClaimRef; claim != nil {
		return w.needs(e.pod, claim.Namespace, claim.Name)
	}
	return w.wants(e.pod, func(wanted schedule.Wanted) bool {
		return wanted.Class != nil && wanted.Class.Name == pv.Spec.StorageClassName
	})
}

// wants is whether the pod wants a volume of some kind. While a claim is not ready
// the answer is yes.
func (w waking) wants(pod *corev1.Pod, kind func(schedule.Wanted) bool) (bool, error) {
	want, err := w.reader.Read(w.lifetime, pod)
	if want == nil || err != nil || want.Unready != "" {
		return true, err
	}
	return slices.ContainsFunc(want.Wanted, kind), nil
}

// uses is whether a pod names a claim, or will.
func uses(pod *corev1.Pod, namespace, claim string) bool {
	return pod.Namespace == namespace && slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return schedule.ClaimName(pod, &v) == claim
	})
}

func (w waking) afterStorageClass(e event) (bool, error) {
	_, class, err := util.As[*storagev1.StorageClass](e.old, e.new)
	if err != nil {
		return true, err
	}
	return w.wants(e.pod, func(wanted schedule.Wanted) bool { return wanted.Class != nil && wanted.Class.Name == class.Name })
}

// afterNode: a node that holds one of the pod's volumes has come back.
func (w waking) afterNode(e event) (bool, error) {
	_, node, err := util.As[*corev1.Node](e.old, e.new)
	if err != nil {
		return true, err
	}
	want, err := w.reader.Read(w.lifetime, e.pod)
	if want == nil || err != nil {
		return true, err
	}
	return slices.ContainsFunc(want.Holders, func(h schedule.Holder) bool { return h.Node == node.Name }), nil
}
