// Package artefact is a cache of things that take long to make.
//
// An artefact is a directory. Its address is a hash over everything that
// determines its content, so a change of any input makes a new artefact and an
// old one is never wrong, only unused. A directory appears under its address
// by a rename after it is complete: a process that sees it sees all of it.
//
// Artefacts are removed by the time of their last use ([Store.Get]). A user that comes back
// to them after a long time, as a cluster does, holds them ([Store.Hold]).
package artefact
