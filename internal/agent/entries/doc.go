// Package entries is what the reports of a node's agent in status.replicas have in
// common, of Volumes and of Snapshots: under which name they are applied, which
// reason an error becomes, whether trying again can help, and the forms that the
// schema asks for.
package entries
