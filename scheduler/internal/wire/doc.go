// Package wire puts Berth's plugins into a scheduler: it makes them, and what they
// share.
//
// A process has one ledger, whatever the number of its profiles: two would promise
// the same room twice. It is fed by the scheduler's own informers for Kubernetes'
// kinds, and by a cache of its own for Berth's, which the scheduler's know only as
// untyped objects.
//
// Pods that wait are woken by the events that the plugins register. Two things are
// no events of any object: that the ledger is complete, and that an agent is heard
// of again after a silence. After those all waiting pods with volumes of Berth are
// activated.
package wire
