// Package healthtest requests the pages of a process in tests.
package healthtest
