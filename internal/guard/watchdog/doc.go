// Package watchdog has the device that resets this machine if the guard does not feed it.
//
// The device runs from the moment it is opened, so it is opened before the first epoch begins, and
// let go of, by the magic character, once nothing is open. A guard that ends in any other way leaves
// it running: the kernel then resets the machine, or a new guard opens it in time.
package watchdog
