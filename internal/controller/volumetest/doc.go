// Package volumetest builds Volumes for the tests of decisions about them, from as few
// words as a row of a table has room for.
package volumetest
