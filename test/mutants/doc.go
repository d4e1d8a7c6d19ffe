// Command mutants breaks the code that may lose data, one small change at a time, and
// runs the tests of the changed package. A change that no test notices shows a gap in the
// tests.
//
// Usage, from the repository's root:
//
//	go run ./test/mutants [-packages REGEXP] [-files REGEXP] [-with REGEXP] [-sample N -seed S] [-jobs N] [-v]
//
// # Changes
//
//	never, always    a condition, an operand of && or ||, a returned truth, or the condition of a
//	                 rule does, or does not, hold
//	no error         a call that returns an error is not made, a returned error is nil
//	left out         a statement is not carried out, nor is a deferred one
//	no lock          a lock is not taken
//	no precondition  a field of client.Preconditions is empty
//	cached           the cache is read in place of the API server
//
// # How
//
// The command compiles all changes of a package into one test binary, each behind a number,
// and runs the binary once for each, with its number in the environment. Linking one binary
// for each change would take most of the time on two processors. go's -overlay changes the
// files: the command writes no source in the tree, and tells rapid to record no failures there.
// A first run of each test without a change shows how long it takes and which changes it
// reaches. With a change the command runs only the tests that reach it, the quickest first. A
// change that no test reaches survives.
//
// gremlins, by its documentation, changes operators and is slow on large modules. It knows
// no precondition, lock or cache.
//
// # Survivors
//
// survivors.txt lists the changes that may survive, each with the reason why it changes
// nothing, or nothing that a test could see. The command fails for a survivor that is not in
// the list, and for an entry whose change is caught or does not exist any more.
package main
