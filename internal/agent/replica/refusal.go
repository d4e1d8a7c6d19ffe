package replica

import (
	"context"
	"errors"
	"fmt"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
)

// errWrongPool: the class of the volume does not let it into the pool.
var errWrongPool = errors.New("pool is not of the class")

// errNoClass: the class of the volume does not exist.
var errNoClass = errors.New("pool class not found")

// reasons maps the classes of a provisioner's errors to the reasons of an
// entry. What is not here is transient: ReasonProvisionerError.
var reasons = []struct {
	err    error
	reason string
}{
	{provision.ErrNoSpace, v1alpha1.ReasonNoSpace},
	{provision.ErrPoolMissing, v1alpha1.ReasonPoolMissing},
	{errNoClass, v1alpha1.ReasonPoolMissing},
	{errWrongPool, v1alpha1.ReasonPoolMissing},
	{provision.ErrInvalid, v1alpha1.ReasonInvalid},
	{provision.ErrConflict, v1alpha1.ReasonConflict},
	{provision.ErrInUse, v1alpha1.ReasonInUse},
}

// reasonOf classifies an error of a step.
func reasonOf(err error) string {
	for _, r := range reasons {
		if errors.Is(err, r.err) {
			return r.reason
		}
	}
	return v1alpha1.ReasonProvisionerError
}

// retried says whether trying the same again soon can help. The others wait for
// a change: of the pool, the class or the volume.
func retried(reason string) bool {
	return reason == v1alpha1.ReasonProvisionerError || reason == v1alpha1.ReasonInUse
}

// refusal is the entry for a step that failed; record is what the node has.
func refusal(v *v1alpha1.Volume, node string, step Step, record *provision.Volume, err error) *v1alpha1.ReplicaStatus {
	reason, message := reasonOf(err), fmt.Sprintf("node %s: %s", node, plain(err))
	switch step {
	case StepCreate:
		return failedEntry(v, wishFor(v, node), reason, message)
	case StepExpand:
		return keptEntry(v, wishFor(v, node), record, reason, message)
	default:
		return stuckEntry(v, node, record, reason, message)
	}
}

// plain words an error for the claim's user.
func plain(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Sprintf("the provisioner does not answer in time: %v", err)
	}
	return err.Error()
}
