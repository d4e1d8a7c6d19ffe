// Package v1alpha1 holds Berth's objects: PoolClass says where volumes may come
// from, StorageNode what a node has, Volume where one volume lives and who may
// write it.
//
// All three are cluster-scoped. Who writes what is fixed, and enforced by
// schema rules and an admission policy:
//
//	object       spec                          status
//	PoolClass    administrators                controller
//	StorageNode  (none)                        the agent of that node
//	Volume       controller, scheduler plugin  controller; agents their own entry
//
// Everything that is decided about a volume is decided by compare-and-swap on
// its one Volume object. That is what makes promotion and removal of replicas
// safe, and why there is no object per volume and node.
//
// +kubebuilder:object:generate=true
// +kubebuilder:ac:generate=true
// +groupName=berth.dev
package v1alpha1
