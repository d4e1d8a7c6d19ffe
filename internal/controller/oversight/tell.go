package oversight

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/ownership"
)

const (
	reporter = "berth.dev/controller"
	// maxNote is the API server's bound for the text of an event.
	maxNote = 1024
	// podEnded is the reason of the event of a pod that was ended after a fence.
	podEnded = "EndedAfterFence"
)

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
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%s/%s/%d/%s/%s", reason, about.Kind, about.UID, v.Epoch.Number, v.Epoch.ID, note))
	namespace := about.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault // where events of cluster-scoped objects are
	}
	if len(note) > maxNote {
		note = strings.ToValidUTF8(note[:maxNote], "")
	}
	err := t.client.Create(ctx, &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "berth-oversight-" + hex.EncodeToString(sum[:16])},
		EventTime:  metav1.NewMicroTime(q.facts.Now),
		Regarding:  about,
		Type:       corev1.EventTypeWarning, Reason: reason, Action: "Oversee", Note: note,
		ReportingController: reporter, ReportingInstance: t.instance,
	})
	switch {
	case err == nil, apierrors.IsAlreadyExists(err):
	case apierrors.IsNotFound(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		// The namespace is being deleted, and with it the readers of the event.
	default:
		return fmt.Errorf("telling of it at %s %s: %w", about.Kind, about.Name, err)
	}
	return nil
}
