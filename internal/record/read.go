package record

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/ownership"
)

// AbsentError says that the API answered that there is no record: no Volume, or one whose creation has
// not come to its first record. A backup from before that looks the same.
type AbsentError struct{ Volume string }

func (e *AbsentError) Error() string {
	return fmt.Sprintf("volume %s has no record of ownership", e.Volume)
}

// UnreadError says that the record could not be read. That proves nothing about it.
type UnreadError struct {
	Volume string
	Cause  error
}

func (e *UnreadError) Error() string {
	return fmt.Sprintf("could not read the record of ownership of volume %s: %v", e.Volume, e.Cause)
}

func (e *UnreadError) Unwrap() error { return e.Cause }

// OneCopyError says that the volume has one copy. It needs no record, and no rule of ownership decides
// about it.
type OneCopyError struct{ Volume string }

func (e *OneCopyError) Error() string {
	return fmt.Sprintf("volume %s has one copy and needs no record of ownership", e.Volume)
}

// Read turns the outcome of an uncached read of the named Volume into its record. The error is
// *AbsentError, *UnreadError or *OneCopyError.
func Read(name string, v *v1alpha1.Volume, err error) (*ownership.Volume, error) {
	switch {
	case absent(err):
		return nil, &AbsentError{Volume: name}
	case err != nil:
		return nil, &UnreadError{Volume: name, Cause: err}
	case v == nil || v.Name != name:
		return nil, &UnreadError{Volume: name, Cause: errors.New("the answer is about another volume")}
	}
	return From(v)
}

// IsAbsent says whether an error of Read says that there is no record.
func IsAbsent(err error) bool {
	var none *AbsentError
	return errors.As(err, &none)
}

// absent tells whether the API server itself said that it has no such object. It also answers 404
// while it does not know the kind, because its definition is missing or not yet served; the client
// marks that answer as an unexpected one.
func absent(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// Tell puts the outcome of Read into the facts of a node.
func Tell(f *ownership.NodeFacts, v *ownership.Volume, err error) {
	f.Record, f.Absent = v, IsAbsent(err)
}
