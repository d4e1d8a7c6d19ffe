// Package build makes the programs of the lab from their Go modules.
//
// Each program belongs to a module below lab/build whose go.mod and go.sum pin
// everything that goes into it. The modules are separate because their
// dependencies contradict each other, and they are outside the workspace, so
// that nothing of the project's own dependencies leaks into them.
package build
