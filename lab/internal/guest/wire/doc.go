// Package wire is the protocol between the lab and the program inside a guest:
// the plan that a guest reads when it boots, and the frames of an exec session.
//
// It imports the standard library only, because the lab builds the guest's program
// from its source alone.
package wire
