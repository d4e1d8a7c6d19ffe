// Command lab runs a real Kubernetes on this machine, whose nodes are virtual
// machines with their own kernel and disks.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// exitError makes the lab exit with the exit code of the command that it ran.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string) int {
	a := newApp()
	defer a.close()
	root := rootCommand(a) //nolint:contextcheck // cobra hands the context to each command
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	if code, ok := errors.AsType[exitError](err); ok {
		return int(code)
	}
	a.close() // the last words go below the final picture of the progress
	fmt.Fprintf(os.Stderr, "lab: %v\n", err)
	return 1
}
