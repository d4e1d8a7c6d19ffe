// Package binding is kube-scheduler's VolumeBinding plugin with some changes for
// claims of Berth, and none for other claims.
//
// # Waiting for claims to be bound
//
// The upstream binder looks at the claims of a pod once a second, and not before
// the first second has passed. A volume of Berth is carved by then. Where all of a
// pod's unbound claims are Berth's and are to be provisioned, Binder writes the
// same objects and waits for the informers' events instead. Once a second it checks
// whether the pod is gone, as upstream does.
//
// # Nodes that are alike
//
// For every node upstream goes through all PersistentVolumes of a claim's class,
// taken ones included. If a pod's claims are all Berth's and to be provisioned, and
// no PersistentVolume of their classes is available, it finds the same on every
// node and refuses none: the ledger decides whether there is room. Then the plugin
// skips Filter, and checks only the chosen node, in Reserve. It also skips scoring
// where upstream would score all nodes alike.
//
// # Capacity
//
// The upstream binder compares a claim with the published CSIStorageCapacity
// objects. In a scheduler that has a ledger this is wrong and expensive: the
// published capacity ignores the room that was just reserved for the pod, and the
// binder goes through all objects for every claim and node. MaskCapacity makes this
// process see Berth's CSIDriver objects as if they published no capacity.
//
// # Name
//
// A plugin of kube-scheduler cannot be replaced under its own name, so this one is
// Name, and a profile enables it in the place of VolumeBinding.
package binding
