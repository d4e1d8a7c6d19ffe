package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"time"
)

// endGrace is how long a program may take to end.
const endGrace = 30 * time.Second

// withProgram calls do while a program runs, and then ends the program.
func withProgram(ctx context.Context, argv []string, do func(ctx context.Context, pid int) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = endGrace
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", argv[0], err)
	}
	ended := make(chan error, 1)
	go func() {
		ended <- cmd.Wait()
		cancel() // do is useless without the program
	}()
	err := do(ctx, cmd.Process.Pid)
	early := ctx.Err() != nil
	cancel()
	if exit := <-ended; early {
		return errors.Join(err, fmt.Errorf("%s ended with %w: %s", argv[0], errors.Join(exit, context.Canceled), tail(said.Bytes())))
	}
	return err
}

// tail returns the end of a program's output.
func tail(said []byte) []byte {
	const most = 2000
	return said[max(0, len(said)-most):]
}
