// Package schedule keeps a ledger of a live cluster and reads which volumes a pod wants.
//
//	informers ─► Feed ─► Book ◄─ Reserve, Fit ─ scheduler plugin, extender, CreateVolume, explain
//	pod ─► Reader ─► PodVolumes ─► ledger.Demand
//
// Package ledger makes the decisions. This package says which objects the ledger is told of, and
// in what terms. The conversions are functions of one object. Feed adds the facts that no single
// object has (which PoolClass a claim's StorageClass names, whether a node's agent is silent).
//
// # One moment
//
// A Book answers nothing before every kind of object was listed once. Afterwards it
// lags behind the API server as far as its informers do, each kind for itself. The ledger
// accepts the events of different kinds in any order, so no lock spans two informers.
//
// # Claims
//
// A claim counts from the moment when a scheduler has selected its node. A claim
// whose data comes from an object that is neither a snapshot nor a claim (a populator
// fills it) never counts by its selected node. The populator's own claim, of the same
// class and node, gets the volume and is charged.
//
// # Clones and restores
//
// A claim that is to begin as a copy goes where its source is. A pod with such a claim waits as
// long as there is nothing to copy. Only the content of a VolumeSnapshot tells which snapshot it
// stands for. A name like Berth's is not enough, since a snapshot may have been brought in by
// hand, or be another driver's. The snapshot API is read without its types and may be missing.
//
// # Inline volumes and pods
//
// Only those pods matter that have inline volumes or that room is held for. The
// handler drops the others, at the price of one map look-up.
package schedule
