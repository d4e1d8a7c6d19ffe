package oversight

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/podlife"
	"berth.dev/berth/internal/record"
)

// write is E3: it writes the record that the rules decided, against the one that was read, and with it the
// conditions that follow from it, so that a failover needs no writes of their own for them. A process that does not
// lead does so, too: a record changes only so often, so two that see the nodes differently do not contradict each
// other without end. If another process was faster, nothing is written and the question is asked again.
func (r *Reconciler) write(ctx context.Context, q *question, a *ownership.Action) error {
	next, err := record.Into(q.volume, a.Next)
	if err != nil {
		return err
	}
	after := *q
	after.volume, after.facts.Record = next, a.Next
	then := after.decide(r.Rules)
	news := false
	if then.Verb == ownership.Nothing || then.Verb == ownership.Wait {
		news, _ = after.conditions(&then)
	}
	switch err := r.Client.Status().Update(ctx, next); {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("writing the record (%s): %w", a.Reason, err)
	}
	log.FromContext(ctx).Info("record written", "volume", q.volume.Name, "reason", a.Reason, "message", a.Message())
	if err := r.teller().tell(ctx, q, a); err != nil || !news {
		return err
	}
	return r.teller().tell(ctx, &after, &then)
}

// endPods is E2: it ends the pods that a fence left behind. The record that was read has the fence, and
// with it the proof. A pod is deleted without grace: no kubelet is there to end it, or the kubelet has nothing
// left to save in its dead mount. It is deleted in the version that was judged: if it has begun since, the node
// is back and may own the next epoch. A change of the pod brings the next question.
func (r *Reconciler) endPods(ctx context.Context, q *question) error {
	pods := q.behind
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
			client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID, ResourceVersion: &pod.ResourceVersion})
		switch {
		case apierrors.IsNotFound(err), apierrors.IsConflict(err): // it has ended or changed, or another has its name
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
		case pod.UID == seen.UID && !podlife.Ended(pod) && pod.DeletionTimestamp == nil:
			pods = append(pods, pod)
		}
	}
	return pods, nil
}

// show is E4: it writes the conditions where the record does not change. One process writes them: two that see
// the nodes differently would contradict each other for ever.
func (r *Reconciler) show(ctx context.Context, q *question, a *ownership.Action) error {
	if !r.Leads() {
		return nil
	}
	news, changed := q.conditions(a)
	if !changed {
		return nil
	}
	switch err := r.Client.Status().Update(ctx, q.volume); {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return nil // its event brings the next question
	case err != nil:
		return fmt.Errorf("writing the conditions: %w", err)
	case news:
		return r.teller().tell(ctx, q, a)
	}
	return nil
}

// conditions make the volume that was read say what it waits for, and on which nodes its replicas do not answer.
// That this process has just begun says nothing about nodes. news says that the volume waits for something else.
func (q *question) conditions(a *ownership.Action) (news, changed bool) {
	begun := q.facts.Watching >= ownership.WatchFirst
	waits, away := false, false
	if begun || a.Reason != ownership.BrakeHeld {
		news, waits = q.say(waiting(a))
	}
	if begun {
		_, away = q.say(replicasAway(&q.facts))
	}
	return news, waits || away
}

// say sets a condition of the volume that was read, not yet written. One that never was True is left out. news
// says that it is True, and was not for this reason.
func (q *question) say(c metav1.Condition) (news, changed bool) {
	all := &q.volume.Status.Conditions
	old, is := meta.FindStatusCondition(*all, c.Type), c.Status == metav1.ConditionTrue
	if old == nil && !is {
		return false, false
	}
	news = is && (old == nil || old.Status != c.Status || old.Reason != c.Reason)
	c.ObservedGeneration, c.LastTransitionTime = q.volume.Generation, metav1.NewTime(q.facts.Now)
	return news, meta.SetStatusCondition(all, c)
}

func waiting(a *ownership.Action) metav1.Condition {
	if a.Verb != ownership.Wait {
		return metav1.Condition{Type: v1alpha1.ConditionWaiting, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNothingWaits}
	}
	return metav1.Condition{Type: v1alpha1.ConditionWaiting, Status: metav1.ConditionTrue, Reason: string(a.Reason), Message: a.Message()}
}

// replicasAway names the nodes with a replica that do not answer. The record keeps what they said last.
func replicasAway(f *ownership.ControllerFacts) metav1.Condition {
	var away []string
	for i := range f.Nodes {
		if e, has := f.Record.Replica(f.Nodes[i].Name); has && f.Nodes[i].Lost {
			away = append(away, fmt.Sprintf("node %s does not answer; its replica was %v", e.Node, e.State))
		}
	}
	if len(away) == 0 {
		return metav1.Condition{Type: v1alpha1.ConditionReplicaAway, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNodesAnswer}
	}
	slices.Sort(away)
	return metav1.Condition{Type: v1alpha1.ConditionReplicaAway, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonNodeAway, Message: strings.Join(away, "; ")}
}
