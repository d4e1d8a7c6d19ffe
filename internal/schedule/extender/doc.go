// Package extender answers a stock kube-scheduler that was configured to ask: on
// which of these nodes do the pod's volumes fit, and how well?
//
//	POST /filter      nodes that fit; for the others why not, in people's words
//	POST /prioritize  0 to 10 for each node; a node that has the pod's data is best
//
// The questions come from the scheduler alone: whoever serves Handler makes sure of
// that. Even so nothing is held for a pod but what the API server says that it has; the pod in
// the question is taken for a name and a UID, and one that does not wait for a node is
// answered 404.
//
// Nodes travel by name alone (nodeCacheCapable). A process that does not lead, or
// whose ledger is not synced, answers 503; a scheduler with ignorable: true then
// goes on without, and the node is what refuses in the end.
//
// # Holds
//
// The scheduler does not say which node it took. So filter holds the room on the
// best of the nodes it names, in the pod's name, until the pod's claims bear their selected
// node, which is then charged for itself, or until a moment has passed. Pods that
// are filtered within that moment may find a node full that is not; they are woken
// by the claim. What is held is never promised twice.
//
// # Preemption
//
// Evicting a pod frees its inline volumes and nothing else. A node that would be
// too small without the inline volumes of all its pods is one that no preemption
// helps; filter says so.
//
// # Static volumes
//
// VolumeBinding gives a claim a PersistentVolume that exists before it has one provisioned. Which
// it has found an extender is not told, so the claims are matched here by the same function,
// node by node, and what is served that way needs no room there.
package extender
