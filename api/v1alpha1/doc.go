// Package v1alpha1 holds Berth's objects: PoolClass says where volumes may come
// from, StorageNode which pools a node has, Volume where one volume lives and
// which node may write it, and Snapshot where a snapshot of a volume lives.
//
// All of them are cluster-scoped. Schema rules and an admission policy enforce
// which process writes which part:
//
//	object       spec                          status
//	PoolClass    administrators                controller
//	StorageNode  administrators                the agent of that node
//	Volume       controller, scheduler plugin  controller; agents their own entry
//	Snapshot     controller                    controller; agents their own entry
//
// Every decision about a volume is a compare-and-swap on its one Volume object.
// That makes promotion and removal of replicas safe, and is the reason that
// there is no object per volume and node.
//
// +kubebuilder:object:generate=true
// +kubebuilder:ac:generate=true
// +groupName=berth.dev
package v1alpha1
