package replica

import (
	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
)

// refusal returns the entry for a step that failed; record is the provisioner's.
func refusal(v *v1alpha1.Volume, node string, step Step, record *provision.Volume, reason, message string) *v1alpha1.ReplicaStatus {
	switch step {
	case StepCreate:
		return failedEntry(v, wishFor(v, node), reason, message)
	case StepExpand:
		return keptEntry(v, wishFor(v, node), record, reason, message)
	default:
		if entry := v.Entry(node); reason == v1alpha1.ReasonPoolMissing && entry.HasData() {
			return lostEntry(v, entry) // whether the provisioner remembers the pool or not
		}
		return stuckEntry(v, node, record, reason, message)
	}
}
