// Package schedule keeps a ledger of a live cluster and reads what a pod wants.
//
//	informers ─► Feed ─► Book ◄─ Reserve, Fit ─ scheduler plugin, extender, CreateVolume, explain
//	pod ─► Reader ─► PodVolumes ─► ledger.Demand
//
// The decisions are package ledger's. This package says which objects the ledger
// is told of, and in what terms: the conversions are functions of one object,
// and Feed adds what no object says alone (which PoolClass a claim's
// StorageClass names, whether a node's agent is silent).
//
// # One moment
//
// A Book answers nothing before every kind of object was listed once. Afterwards
// it is as far behind the API server as its informers are, each kind for itself;
// Seen tells how far for one object. The ledger is built to be told things in any
// order across kinds, so no lock spans two informers.
//
// # Claims
//
// A claim counts from the moment a scheduler has selected its node. One whose
// data comes from an object that is neither a snapshot nor a claim (a populator
// fills it) never counts by its selected node: the populator's own claim, of the
// same class and node, gets the volume, and is the one that is charged.
//
// # Clones and restores
//
// A claim that is to begin as a copy goes where its source is, and a pod with such
// a claim waits as long as there is nothing to copy. What a VolumeSnapshot is of
// only its content tells: a name of Berth's would not do, since a snapshot may have
// been brought in by hand, or be another driver's. The snapshot API is read without
// its types and may be missing.
//
// # Inline volumes and pods
//
// Of pods only those matter that have inline volumes or that room is held for.
// Others are dropped at the handler, at the price of one map look-up.
package schedule
