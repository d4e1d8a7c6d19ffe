package oversight

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/controller/events"
	"berth.dev/berth/internal/ownership"
)

// podEnded is the reason of the event of a pod that was ended after a fence.
const podEnded = "EndedAfterFence"

// told are the steps that its users hear of, beside all that a volume waits for. The others are upkeep.
var told = map[ownership.Reason]bool{
	ownership.WriterFenced: true, ownership.FenceRequested: true, ownership.RecoveryPointLost: true, ownership.RecordBehind: true,
}

// teller makes events.
type teller struct {
	client client.Client
	// instance is the name of this process.
	instance string
}

// tell is E5: events of the Volume and of its claim. Events may be lost if the process is killed. The record
// and the condition say the same.
func (t teller) tell(ctx context.Context, q *question, a *ownership.Action) error {
	if a.Verb == ownership.Record && !told[a.Reason] {
		return nil
	}
	about := []corev1.ObjectReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Volume", Name: q.volume.Name, UID: q.volume.UID}}
	if c := q.claim; c != nil {
		about = append(about, corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: c.Namespace, Name: c.Name, UID: c.UID})
	}
	for _, o := range about {
		if err := t.create(ctx, q, o, string(a.Reason), a.Message()); err != nil {
			return err
		}
	}
	return nil
}

func (t teller) tellOfPod(ctx context.Context, q *question, pod *corev1.Pod) error {
	about := corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}
	return t.create(ctx, q, about, podEnded, fmt.Sprintf("node %s can not write volume %s any more; the pod was ended so that it can go on elsewhere",
		pod.Spec.NodeName, q.volume.Name))
}

// create makes an event. Its name follows from its content and the epoch, so that each is made once.
func (t teller) create(ctx context.Context, q *question, about corev1.ObjectReference, reason, note string) error {
	v := q.facts.Record
	return events.Publish(ctx, t.client, events.Event{
		Name:  events.Name("berth-oversight-", fmt.Sprintf("%s/%s/%s/%d/%s/%s", reason, about.Kind, about.UID, v.Epoch.Number, v.Epoch.ID, note)),
		About: about, Type: corev1.EventTypeWarning, Reason: reason, Action: "Oversee", Note: note, At: q.facts.Now, Instance: t.instance,
	})
}
