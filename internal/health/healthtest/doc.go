// Package healthtest asks the pages of a process in tests.
package healthtest
