// Package wire is what the lab and the program inside a guest say to each
// other: the plan a guest reads when it boots, and the frames of an exec
// session.
//
// It imports the standard library only, because the guest's program is built
// from its source alone, wherever the lab runs.
package wire
