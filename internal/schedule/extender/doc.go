// Package extender answers a stock kube-scheduler that was configured to ask: on
// which of these nodes do the pod's volumes fit, and how well?
//
//	POST /filter      nodes that fit; for the others why not, in people's words
//	POST /prioritize  0 to 10 for each node; a node that has the pod's data is best
//
// Only the scheduler may ask: the process that serves Handler makes sure of that. Even so, room
// is held for a pod only as the API server describes the pod. The pod in the question counts only
// as a name and a UID. A question about a pod that does not wait for a node is answered 404.
//
// Nodes travel by name alone (nodeCacheCapable). A process that does not lead, or whose ledger
// is not synced, answers 503. A scheduler with ignorable: true then goes on without the
// extender, and in the end the node refuses.
//
// # Holds
//
// The scheduler does not say which node it took. So filter holds the room in the pod's name
// on the best of the nodes that it names. The hold ends when the pod's claims have their
// selected node, which is then charged for the claims themselves, or when a moment has
// passed. Pods that are filtered within that moment may find a node full that is not. The
// claim's event wakes them. Room that is held is never promised twice.
//
// # Preemption
//
// Evicting a pod frees its inline volumes and nothing else. If a node is too small even
// without the inline volumes of all its pods, no preemption helps; filter says so.
//
// # Static volumes
//
// VolumeBinding first looks for an existing PersistentVolume for a claim, and only then has one
// provisioned. The extender is not told which one it has found. So it matches the claims by the
// same function, node by node. A claim that is served that way needs no room there.
package extender
