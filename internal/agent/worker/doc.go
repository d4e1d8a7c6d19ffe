// Package worker is what the workers of a node's replicas and of its snapshots have in
// common: how long they wait, whom they tell, what becomes of a step that failed, and
// when data may go that its object does not want, or has no object.
//
// What kind of object it is, what it wants and what the provisioner has of it is known
// to packages replica and snapshot alone.
package worker
