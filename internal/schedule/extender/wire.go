package extender

import corev1 "k8s.io/api/core/v1"

// The messages of kube-scheduler's extender protocol, version 1, as far as they are used. They
// are written out here because their module is the scheduler's, which this one does not import.

// Args is the request of the scheduler.
type Args struct {
	Pod *corev1.Pod
	// NodeNames is nil from a scheduler that is not configured to send names.
	NodeNames *[]string
}

// FilterResult is the answer to filter.
type FilterResult struct {
	NodeNames *[]string
	// FailedNodes may fit after an eviction, FailedAndUnresolvableNodes may not. Both
	// map nodes to reasons.
	FailedNodes                map[string]string
	FailedAndUnresolvableNodes map[string]string
	Error                      string
}

// HostPriority is one node's part of the answer to prioritize.
type HostPriority struct {
	Host  string
	Score int64
}

// maxPriority is the best score of the protocol.
const maxPriority = 10
