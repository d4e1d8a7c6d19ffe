package run

import "context"

// Host runs the machine's own programs for a process in a container that sees the processes of the machine: in
// the mounts, the network and the names of its process 1. A program speaks to a daemon of the machine there,
// and is of the daemon's version.
type Host struct{ Runner Runner }

var _ Runner = Host{}

// Query implements Runner.
func (h Host) Query(ctx context.Context, c Command) ([]byte, error) {
	return h.Runner.Query(ctx, onHost(c))
}

// Change implements Runner.
func (h Host) Change(c Command) ([]byte, error) { return h.Runner.Change(onHost(c)) }

func onHost(c Command) Command {
	c.Args = append([]string{"--target=1", "--mount", "--net", "--uts", "--ipc", "--", c.Program}, c.Args...)
	c.Program = "nsenter"
	return c
}
