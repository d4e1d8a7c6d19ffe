// Package binding is kube-scheduler's VolumeBinding plugin with some things
// changed for claims of Berth, and nothing for those of others.
//
// # Waiting for claims to be bound
//
// The upstream binder looks at the claims of a pod once a second, and not before
// the first second has passed. A volume of Berth is carved by then. Where all of a
// pod's unbound claims are Berth's and are to be provisioned, Binder writes the
// same objects and waits for the informers' events instead. That a pod goes
// meanwhile is looked for once a second, as upstream does.
//
// # Nodes that are alike
//
// For every node upstream goes through all PersistentVolumes of a claim's class,
// those that are taken included. Where a pod's claims are all Berth's and to be
// provisioned, and no PersistentVolume of their classes is to be had, it finds the
// same on every node, and nothing to refuse: whether there is room is decided by
// the ledger. Then Filter is skipped, and the one node that is chosen is looked at
// in Reserve. Nor are nodes scored that upstream would score alike.
//
// # Capacity
//
// The upstream binder compares a claim with the published CSIStorageCapacity
// objects. In a scheduler that has a ledger this is wrong and expensive: the room
// that was just reserved for the pod is missing from what is published, and all
// objects are gone through for every claim and node. MaskCapacity makes this
// process see Berth's CSIDriver objects as if they published no capacity.
//
// # Name
//
// A plugin of kube-scheduler cannot be replaced under its own name, so this one is
// Name, and a profile enables it in the place of VolumeBinding.
package binding
