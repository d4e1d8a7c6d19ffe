// Command kubectl-berth is the plugin of kubectl that answers questions about Berth, and
// handles data that has lost its objects: kubectl berth status, nodes, pools, volumes, explain,
// orphans, adopt, forget, version.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newRootCommand(connect).ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "kubectl berth:", err)
		os.Exit(1)
	}
}
