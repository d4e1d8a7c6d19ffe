// Command mutants breaks the code that may lose data, one small change at a time, and
// runs the tests of the changed package: a change that no test notices shows what is
// not tried.
//
// Usage, from the repository's root:
//
//	go run ./test/mutants [-packages REGEXP] [-sample N -seed S] [-jobs N] [-v]
//
// # Changes
//
//	never, always    a condition, an operand of && or ||, or a returned truth does, or does not, hold
//	no error         a call that returns an error is not made, an error that is returned is nil
//	left out         a statement for its effect is not carried out, a deferred one neither
//	no lock          a lock is not taken
//	no precondition  a field of client.Preconditions is empty
//	cached           the cache is read in place of the API server
//
// # How
//
// All changes of a package are compiled into one test binary, each behind a number, and
// the binary is run once for each, with its number in the environment. Linking one binary
// for each change would take most of the time on two processors. The files are changed by
// go's -overlay: no source in the tree is written, and rapid is told to note no failures there.
// A first run without a change tells how long the tests take and which changes those of each
// package get to; they alone are run with it, and a change that none gets to lives.
//
// gremlins, by its documentation, changes operators and is slow on large modules. It knows
// no precondition, lock or cache.
//
// # What lives
//
// survivors.txt lists the changes that may live, each with the reason why it changes
// nothing, or nothing that a test could see. The command fails for one that lives and is
// not in the list, and for an entry whose change is caught or does not exist any more. A
// target that is marked open in targets.go has survivors that nobody has judged: it is
// tried only when -packages names it, and nothing fails for it.
package main
