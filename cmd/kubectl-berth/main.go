// Command kubectl-berth is the plugin of kubectl that answers questions about Berth,
// handles data that has lost its objects, and moves shared disks: kubectl berth status, nodes, pools,
// volumes, replicas, explain, failover, drain, doctor, bundle, orphans, adopt, forget, version.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"berth.dev/berth/internal/plain"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newRootCommand(connect).ExecuteContext(ctx)
	stop()
	if err != nil {
		complain(os.Stderr, err)
		os.Exit(exitCode(err))
	}
}

// complain says why the command could not do its work, in one line: the error may have the text of others.
func complain(to io.Writer, err error) {
	_, _ = fmt.Fprintln(plain.Writer{To: to}, "kubectl berth:", plain.Line(err.Error())) // nothing is left to do about it
}

// exitCode is 2 for a doctor's finding, and 1 for a command that could not do its work.
func exitCode(err error) int {
	if _, found := errors.AsType[findingsError](err); found {
		return 2
	}
	return 1
}
