// Package lagging plays an API server, and a manager's client whose cache lags
// behind it.
//
// A controller reads from its cache and asks the API server itself before it loses
// anything. A test on one plain fake client cannot tell the two apart: a controller
// that trusts the cache passes it. Here they are separate. The test holds the cache
// back, lets others write meanwhile, and checks the decision:
//
//	s := lagging.New(t, volume, claim)
//	r := &Reconciler{Client: s.Client(), Live: s.Live()}
//	s.Hold()                          // the cache stays as it is now
//	s.Others().Delete(ctx, claim)     // another client is faster
//	r.Reconcile(...)
//	s.Advance()                       // the cache, and its informers, catch up
//
// Every deletion by Client fails the test unless it names the very object that it was
// decided about, by UID and resourceVersion. DeletedByUID names the kinds whose
// deletion does not depend on the content of the object.
//
// Before and After stop a write, fail it, or let others write around it.
package lagging
