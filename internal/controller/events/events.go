package events

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// MaxNote is how many bytes the API server allows for the text of an event.
const MaxNote = 1024

const reporter = "berth.dev/controller"

// Event is what one object's users are told.
type Event struct {
	// Name follows from the content, so that each event is made once: see Name.
	Name  string
	About corev1.ObjectReference
	// Type is one of Kubernetes' types of events. Reason and Action are CamelCase words, and Note is a
	// text for people.
	Type, Reason, Action, Note string
	At                         time.Time
	// Instance is the name of the process that tells.
	Instance string
}

// Name returns a name that follows from a content.
func Name(prefix, content string) string {
	sum := sha256.Sum256([]byte(content))
	return prefix + hex.EncodeToString(sum[:16])
}

// Publish makes an event. One that is there already is no error, nor is a namespace that is being deleted,
// and with it the readers of the event.
func Publish(ctx context.Context, c client.Client, e Event) error {
	namespace := e.About.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault // where events of cluster-scoped objects are
	}
	if len(e.Note) > MaxNote {
		e.Note = strings.ToValidUTF8(e.Note[:MaxNote], "")
	}
	err := c.Create(ctx, &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: e.Name},
		EventTime:  metav1.NewMicroTime(e.At), Regarding: e.About,
		Type: e.Type, Reason: e.Reason, Action: e.Action, Note: e.Note,
		ReportingController: reporter, ReportingInstance: e.Instance,
	})
	switch {
	case err == nil, apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return nil
	}
	return fmt.Errorf("telling of it at %s %s: %w", e.About.Kind, e.About.Name, err)
}
