package placed

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/decide"
	"berth.dev/berth/internal/decide/orphan"
	"berth.dev/berth/internal/provision"
)

// Object is a Volume or a Snapshot, and E the type of a node's entry in it.
type Object[E any] interface {
	metav1.Object
	Entry(node string) *E
	Wish(node string) *v1alpha1.ReplicaSpec
}

// Kind holds the decisions about one kind of object. R is the type of the provisioner's record.
type Kind[O Object[E], E, R any] struct {
	// What names the kind for people.
	What string
	// Decide decides what a node does next about an object.
	Decide func(v View[O, E, R]) Answer[E]
	// Refusal answers an object whose step failed, for a reason.
	Refusal func(v View[O, E, R], verb decide.Verb, reason, message string) Answer[E]
	// Settled says whether there is nothing to do while no report of the pools shows the data.
	Settled func(v View[O, E, R]) bool
	// Says reads an entry, which may be nil: pool is the pool that it names, data says that the
	// data in it is that of this very object, and gone that nothing is left.
	Says func(entry *E) (pool string, data, gone bool)
	// Unsure says whether the record of new data does not tell it from data that a pod may have
	// used. Then it must be known before the data is made that there is no record.
	Unsure func(o O) bool
	// MayExist says whether a step may have failed because an earlier run of the agent had made
	// the data.
	MayExist func(err error) bool
	// Describe returns the data of a record, and what to tell people if it has no object.
	Describe func(record *R, node string) (data orphan.Record, noObject string)
	// Records returns the records in the pools that an object may account for, by name.
	Records func(pools []provision.Pool) map[string]*R
	// Possible says whether a step that was refused because of its pool may succeed now.
	Possible func(v View[O, E, R], pools []provision.Pool) bool
}

// Answer is the decision of a node about the data of one object, and its report on it.
type Answer[E any] struct {
	decide.Decision
	// Entry is the node's report; nil when it has nothing to add.
	Entry *E
	// News says that the object's status does not have the entry yet.
	News bool
	// Final says that no second try of the step that the entry is about can help.
	Final bool
	// Format asks for the filesystem that is still to be made on a replica, if it names one.
	Format provision.FormatRequest
}

// To returns an answer without an entry.
func To[E any](verb decide.Verb) Answer[E] { return Answer[E]{Decision: decide.Decision{Verb: verb}} }

// Say returns the answer that reports an entry, if that says something new.
func Say[E any](entry *E, news bool, reason, message string) Answer[E] {
	d := decide.Decision{Verb: decide.None, Reason: reason, Message: message}
	if news {
		d.Verb = decide.Report
	}
	return Answer[E]{Decision: d, Entry: entry, News: news}
}
