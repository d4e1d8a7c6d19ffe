package entries

import (
	"errors"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
)

var (
	// ErrWrongPool says that the class does not select the pool.
	ErrWrongPool = errors.New("pool is not of the class")
	// ErrNoClass says that the class does not exist.
	ErrNoClass = errors.New("pool class not found")
	// ErrNoSource says that the source of a copy or a snapshot is not on the node.
	ErrNoSource = errors.New("source not found")
)

// reasons maps the classes of errors to the reasons of an entry. An error of another class
// is transient: ReasonProvisionerError.
var reasons = []struct {
	err    error
	reason string
}{
	{ErrNoSource, v1alpha1.ReasonSourceMissing},
	{provision.ErrNoSpace, v1alpha1.ReasonNoSpace},
	{provision.ErrPoolMissing, v1alpha1.ReasonPoolMissing},
	{ErrNoClass, v1alpha1.ReasonPoolMissing},
	{ErrWrongPool, v1alpha1.ReasonPoolMissing},
	{provision.ErrInvalid, v1alpha1.ReasonInvalid},
	{provision.ErrUnsupported, v1alpha1.ReasonUnsupported},
	{provision.ErrConflict, v1alpha1.ReasonConflict},
	{provision.ErrInUse, v1alpha1.ReasonInUse},
}

// Reason classifies an error of a step.
func Reason(err error) string {
	for _, r := range reasons {
		if errors.Is(err, r.err) {
			return r.reason
		}
	}
	return v1alpha1.ReasonProvisionerError
}

// Retried says whether trying the same again soon can help. The other reasons need a
// change first: of the pool, the class or the wish.
func Retried(reason string) bool {
	switch reason {
	case v1alpha1.ReasonProvisionerError, v1alpha1.ReasonInUse, v1alpha1.ReasonSourceMissing:
		return true
	default:
		return false
	}
}
