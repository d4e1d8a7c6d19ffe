// Package wipe erases the data of a deleted volume: afterwards every read of the range
// returns zeros. The package chooses the method and checks the result. Its callers
// implement the devices.
package wipe
