// Package certificates signs the certificates by which nodes and controllers know each other.
//
// Every controller does this work, whether or not it leads: a node must get its certificate although the leader
// has just died. Each write names the version that it replaces, so of two controllers that decide the same one
// is refused and reads again.
//
// The authority (Keeper) is a Secret in Berth's namespace, with the keys, and a ConfigMap beside it with the
// certificates alone, which the kubelets bring to agents and guards. The first controller makes the Secret by a
// create that only one can win. When a third of an authority's life is left a successor is added, which is
// trusted for a day before it signs; what has expired is removed. The ConfigMap always follows the Secret, and
// is never read for what to trust.
//
// A Secret that is lost or damaged is not replaced. The certificates of the old authority are valid for up to
// seven days, and a new authority beside them would split the nodes into two halves that do not know each
// other. The ConfigMap is the memory that there was an authority: while it has one that is valid, a Secret that
// is missing is an error that people must settle.
//
// Requests (Signer) are decided by issue.Decide. A node has a budget of requests, so that one that asks without
// end delays its own certificate and no other.
package certificates
