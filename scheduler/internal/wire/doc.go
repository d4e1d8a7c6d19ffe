// Package wire puts Berth's plugins into a scheduler: it makes them, and the
// objects that they share.
//
// A process has one ledger, whatever the number of its profiles: two would promise
// the same room twice. It is fed by the scheduler's own informers for Kubernetes'
// kinds, and by a cache of its own for Berth's, which the scheduler's know only as
// untyped objects.
//
// # Waking pods
//
// Pods that a plugin refused wait for events that the plugin registers. Those are
// the scheduler's own, and the ledger may hear of the same change later: a pod that
// is tried in between is refused again. So every change that the ledger has to know
// - a report, a Volume that goes, a pod that ends, an agent that is heard again -
// wakes pods by the waker. It comes after the ledger in each informer's handler,
// and asks the ledger which of the refused pods fit now on nodes that refused them
// for a curable reason. Waking bypasses the queue's back-off, so the waker keeps
// one of its own: a pod that is refused again rests before it is woken again, the
// longer the more often.
package wire
