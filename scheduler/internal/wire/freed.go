package wire

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/schedule"
)

// watch puts the waker behind the ledger's feed: every change that may free room
// there wakes the pods that fit now.
func (w *waker) watch(from *schedule.Informers) {
	everything := func(any) { w.everything() }
	from.PoolClasses = schedule.After(from.PoolClasses, cache.ResourceEventHandlerFuncs{AddFunc: everything, UpdateFunc: func(_, obj any) { everything(obj) }})
	from.StorageNodes = schedule.After(from.StorageNodes, w.reports())
	from.Volumes = schedule.After(from.Volumes, w.left(func(obj any) []string {
		v, _ := obj.(*v1alpha1.Volume)
		return nodesOf(v)
	}))
	sourced := func(any) { w.sourced() }
	from.Volumes = schedule.After(from.Volumes, cache.ResourceEventHandlerFuncs{AddFunc: sourced, UpdateFunc: func(_, obj any) { sourced(obj) }, DeleteFunc: sourced})
	from.Claims = schedule.After(from.Claims, w.left(func(obj any) []string {
		if claim, ok := obj.(*corev1.PersistentVolumeClaim); ok && claim.Annotations[schedule.SelectedNode] != "" {
			return []string{claim.Annotations[schedule.SelectedNode]}
		}
		return nil
	}))
	from.Pods = schedule.After(from.Pods, w.pods())
	from.Returned = w.open // no pod may have been refused there: a new node is reported before its agent is heard
}

// reports wakes pods for the reports of a node. The classes that it serves seldom
// change; the rest may change every second, and concerns only the pods that were
// refused the node.
func (w *waker) reports() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if n, ok := obj.(*v1alpha1.StorageNode); ok {
				w.open(n.Name)
			}
		},
		UpdateFunc: func(old, obj any) {
			before, _ := old.(*v1alpha1.StorageNode)
			n, ok := obj.(*v1alpha1.StorageNode)
			switch {
			case !ok:
			case before == nil || !slices.EqualFunc(before.Status.Pools, n.Status.Pools, serveAlike):
				w.open(n.Name)
			default:
				w.freed(n.Name)
			}
		},
	}
}

// serveAlike is whether two pools serve the same.
func serveAlike(a, b v1alpha1.Pool) bool {
	return a.Name == b.Name && a.Media == b.Media && slices.Equal(a.Classes, b.Classes)
}

// left wakes pods for the nodes that an object was on before it changed or went.
func (w *waker) left(nodes func(obj any) []string) cache.ResourceEventHandler {
	was := func(obj any) {
		if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			obj = unknown.Obj
		}
		if left := nodes(obj); len(left) > 0 {
			w.freed(left...)
		}
	}
	return cache.ResourceEventHandlerFuncs{UpdateFunc: func(old, _ any) { was(old) }, DeleteFunc: was}
}

func nodesOf(v *v1alpha1.Volume) []string {
	if v == nil {
		return nil
	}
	var nodes []string
	for _, replica := range v.Spec.Replicas {
		nodes = append(nodes, replica.Node)
	}
	for i := range v.Status.Replicas {
		nodes = append(nodes, v.Status.Replicas[i].Node)
	}
	return nodes
}

// pods wakes for the room of pods that have ended, and forgets those that need no
// waking any more.
func (w *waker) pods() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(_, obj any) {
			if pod, ok := obj.(*corev1.Pod); ok && pod.Spec.NodeName != "" {
				w.refusals.Forget(pod)
				if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
					w.ended(pod)
				}
			}
		},
		DeleteFunc: func(obj any) {
			if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = unknown.Obj
			}
			if pod, ok := obj.(*corev1.Pod); ok {
				w.refusals.Forget(pod)
				w.ended(pod)
			}
		},
	}
}

// ended wakes for the room of a pod that has ended.
func (w *waker) ended(pod *corev1.Pod) {
	if pod.Spec.NodeName != "" && len(pod.Spec.Volumes) > 0 {
		w.freed(pod.Spec.NodeName)
	}
}
