package nodegone

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/controller/events"
)

// tell publishes a new mark as events of the claim, the PersistentVolume and the Volume.
// The name of an event follows from its content, so a second attempt finds it there.
func (r *Reconciler) tell(ctx context.Context, f *Facts, v Verdict) error {
	for _, about := range f.audience() {
		if err := events.Publish(ctx, r.Client, r.event(f, v, about)); err != nil {
			return err
		}
	}
	return nil
}

// audience returns the objects where people look for events. The claim may be gone already.
func (f Facts) audience() []corev1.ObjectReference {
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

func (r *Reconciler) event(f *Facts, v Verdict, about corev1.ObjectReference) events.Event {
	since := f.Now
	if m := mark(f.Volume); counting(m) {
		since = m.LastTransitionTime.Time
	}
	kind := corev1.EventTypeWarning
	if v.Status == metav1.ConditionFalse {
		kind = corev1.EventTypeNormal
	}
	return events.Event{
		Name:  events.Name("berth-nodegone-", fmt.Sprintf("%s/%s/%s/%d", v.Reason, about.Kind, about.UID, since.Unix())),
		About: about, Type: kind, Reason: v.Reason, Action: "Released", Note: v.Message, At: f.Now, Instance: r.Instance,
	}
}
