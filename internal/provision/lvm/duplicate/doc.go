// Package duplicate makes one device hold what another holds. It says how; the devices
// are its callers'.
package duplicate
