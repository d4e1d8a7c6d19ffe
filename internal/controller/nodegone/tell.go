package nodegone

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/controller/events"
	"berth.dev/berth/internal/decide/gone"
)

// tell publishes a new mark as events of the claim, the PersistentVolume and the Volume.
// The name of an event follows from its content, so a second attempt finds it there.
func (r *Reconciler) tell(ctx context.Context, f *gone.Facts, a gone.Answer) error {
	for _, about := range audience(f) {
		if err := events.Publish(ctx, r.Client, r.event(f, a, about)); err != nil {
			return err
		}
	}
	return nil
}

// audience returns the objects where people look for events. The claim may be gone already.
func audience(f *gone.Facts) []corev1.ObjectReference {
	at := []corev1.ObjectReference{{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: "Volume", Name: f.Volume.Name, UID: f.Volume.UID,
	}}
	pv := f.PersistentVolume
	if pv == nil {
		return at
	}
	at = append(at, corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolume", Name: pv.Name, UID: pv.UID})
	if ref := pv.Spec.ClaimRef; ref != nil {
		at = append(at, corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID})
	}
	return at
}

func (r *Reconciler) event(f *gone.Facts, a gone.Answer, about corev1.ObjectReference) events.Event {
	since := f.Now
	if m := gone.MarkOf(f.Volume); gone.Counting(m) {
		since = m.LastTransitionTime.Time
	}
	kind := corev1.EventTypeWarning
	if a.Status == metav1.ConditionFalse {
		kind = corev1.EventTypeNormal
	}
	return events.Event{
		Name:  events.Name("berth-nodegone-", fmt.Sprintf("%s/%s/%s/%d", a.Reason, about.Kind, about.UID, since.Unix())),
		About: about, Type: kind, Reason: a.Reason, Action: "Released", Note: a.Message, At: f.Now, Instance: r.Instance,
	}
}
