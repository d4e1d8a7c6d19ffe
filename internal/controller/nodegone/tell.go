package nodegone

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

	"berth.dev/berth/api/v1alpha1"
)

const (
	reporter = "berth.dev/controller"
	// maxNote is the API server's bound for the text of an event.
	maxNote = 1024
)

// tell publishes a new mark as events of the claim, the PersistentVolume and the Volume.
// The name of an event follows from its content, so a second attempt finds it there.
func (r *Reconciler) tell(ctx context.Context, f *Facts, v Verdict) error {
	for _, about := range f.audience() {
		e := r.event(f, v, about)
		err := r.Client.Create(ctx, e)
		switch {
		case err == nil, apierrors.IsAlreadyExists(err):
		case apierrors.IsNotFound(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
			// The claim's namespace is being deleted, and with it the readers of the event.
		default:
			return fmt.Errorf("telling of it at %s %s: %w", about.Kind, about.Name, err)
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

func (r *Reconciler) event(f *Facts, v Verdict, about corev1.ObjectReference) *eventsv1.Event {
	since := f.Now
	if m := mark(f.Volume); counting(m) {
		since = m.LastTransitionTime.Time
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%s/%s/%d", v.Reason, about.Kind, about.UID, since.Unix()))
	namespace := about.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault // where events of cluster-scoped objects are
	}
	note := v.Message
	if len(note) > maxNote {
		note = strings.ToValidUTF8(note[:maxNote], "")
	}
	kind := corev1.EventTypeWarning
	if v.Status == metav1.ConditionFalse {
		kind = corev1.EventTypeNormal
	}
	return &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "berth-nodegone-" + hex.EncodeToString(sum[:16])},
		EventTime:  metav1.NewMicroTime(f.Now),
		Regarding:  about,
		Type:       kind, Reason: v.Reason, Action: "Released", Note: note,
		ReportingController: reporter, ReportingInstance: r.Instance,
	}
}
