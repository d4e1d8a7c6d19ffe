// Package volumetest builds Volumes for the tests of decisions about them. Its calls
// are short enough for a row of a table.
package volumetest
