// Package progress shows the progress of long work to a person.
//
// Work is a set of named steps that may run side by side. On a terminal each
// running step has one live line with its elapsed time; into a pipe or a file
// each step is one line when it starts and one when it ends, so that a log can
// be read afterwards. Progress goes to standard error: standard output belongs
// to results.
package progress
