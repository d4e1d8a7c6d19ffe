package oversight

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/record"
)

// write is E3: it writes the record that the rules decided, against the one that was read. If another
// process was faster, nothing is written and the question is asked again.
func (r *Reconciler) write(ctx context.Context, q *question, a *ownership.Action) error {
	next, err := record.Into(q.volume, a.Next)
	if err != nil {
		return err
	}
	switch err := r.Client.Status().Update(ctx, next); {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("writing the record (%s): %w", a.Reason, err)
	}
	log.FromContext(ctx).Info("record written", "volume", q.volume.Name, "reason", a.Reason, "message", a.Message())
	return r.teller().tell(ctx, q, a)
}

// endPods is E2: it ends the pods that a fence left behind. The record that was read has the fence, and
// with it the proof. A pod is deleted by its UID and without grace: no kubelet is there to end it, or the
// kubelet has nothing left to save in its dead mount.
func (r *Reconciler) endPods(ctx context.Context, q *question) error {
	if q.volume.Spec.Sharing != v1alpha1.Exclusive {
		return nil // several nodes may have live mounts
	}
	pods := leftBehind(q.facts.Record, q.pods, func(node string) bool { return q.away[node] })
	dead, err := deadPods(ctx, r, q)
	if err != nil {
		return err
	}
	if pods = append(pods, dead...); len(pods) == 0 {
		return nil
	}
	claim, err := r.claimNow(ctx, q)
	if claim == nil {
		return err // the pods name another claim by now
	}
	for _, pod := range pods {
		if !uses(pod, claim) {
			continue
		}
		err := r.Client.Delete(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}},
			client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID})
		switch {
		case apierrors.IsNotFound(err), apierrors.IsConflict(err): // it has ended, and another may have its name
			continue
		case err != nil:
			return fmt.Errorf("ending pod %s/%s on node %s: %w", pod.Namespace, pod.Name, pod.Spec.NodeName, err)
		}
		log.FromContext(ctx).Info("pod ended", "pod", client.ObjectKeyFromObject(pod).String(), "node", pod.Spec.NodeName, "volume", q.volume.Name)
		if err := r.teller().tellOfPod(ctx, q, pod); err != nil {
			return err
		}
	}
	return nil
}

// deadPods are the stranded pods that have been seen so for a while, and that the API server still has so.
func deadPods(ctx context.Context, r *Reconciler, q *question) (pods []*corev1.Pod, err error) {
	for _, seen := range r.Contact.stranded(q.volume.Name, q.stranded) {
		pod := &corev1.Pod{}
		switch err := r.read(ctx, client.ObjectKeyFromObject(seen), pod); {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, fmt.Errorf("reading pod %s/%s: %w", seen.Namespace, seen.Name, err)
		case pod.UID == seen.UID && !ended(pod) && pod.DeletionTimestamp == nil:
			pods = append(pods, pod)
		}
	}
	return pods, nil
}

// show is E4: it makes the condition Waiting say what the volume waits for. One process writes it: two
// that see the nodes differently would contradict each other for ever.
func (r *Reconciler) show(ctx context.Context, q *question, a *ownership.Action) error {
	if !r.Leads() || a.Reason == ownership.BrakeHeld && q.facts.Watching < ownership.WatchFirst {
		return nil // that this process has just begun says nothing about the volume
	}
	c := metav1.Condition{
		Type: v1alpha1.ConditionWaiting, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNothingWaits,
		ObservedGeneration: q.volume.Generation, LastTransitionTime: metav1.NewTime(q.facts.Now),
	}
	if a.Verb == ownership.Wait {
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, string(a.Reason), a.Message()
	}
	old := meta.FindStatusCondition(q.volume.Status.Conditions, c.Type)
	if old == nil && c.Status == metav1.ConditionFalse {
		return nil
	}
	told := old != nil && old.Status == c.Status && old.Reason == c.Reason
	if !meta.SetStatusCondition(&q.volume.Status.Conditions, c) {
		return nil
	}
	switch err := r.Client.Status().Update(ctx, q.volume); {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return nil // its event brings the next question
	case err != nil:
		return fmt.Errorf("writing the condition %s: %w", c.Type, err)
	}
	if told || c.Status == metav1.ConditionFalse {
		return nil
	}
	return r.teller().tell(ctx, q, a)
}
