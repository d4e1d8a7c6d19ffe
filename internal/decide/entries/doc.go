// Package entries holds the common parts of the entries that a node's agent writes to
// status.replicas of Volumes and of Snapshots: the name of the field manager, the reason
// for an error, whether trying again can help, and the forms that the schema asks for.
package entries
