// Package wipe makes what a deleted volume held unreadable: afterwards the range reads
// as zeros, whoever reads it. It says how, and checks it; the devices are its callers'.
package wipe
