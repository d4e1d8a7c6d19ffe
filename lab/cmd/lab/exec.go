package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"berth.dev/berth/lab/internal/guest"
	"berth.dev/berth/lab/internal/guest/wire"
)

func execCommand(a *app) *cobra.Command {
	var withInput bool
	cmd := &cobra.Command{
		Use:               "exec [-i] NODE -- COMMAND [ARGUMENT]...",
		Short:             "Run a command as root on a node; output and exit code are passed through",
		Args:              cobra.MinimumNArgs(2),
		ValidArgsFunction: a.completeNodes,
		RunE: func(cmd *cobra.Command, args []string) error {
			node, argv, err := splitExec(args)
			if err != nil {
				return err
			}
			r := guest.ExecRequest{Argv: argv, Stdout: cmd.OutOrStdout(), Stderr: cmd.ErrOrStderr()}
			if withInput {
				r.Stdin = os.Stdin
			}
			return runOn(cmd.Context(), a, node, r)
		},
	}
	cmd.Flags().SetInterspersed(false) // flags after NODE belong to the command
	cmd.Flags().BoolVarP(&withInput, "stdin", "i", false, "pass standard input on")
	return cmd
}

// splitExec removes the separator before the command. The lab's flags end at NODE, so
// that it leaves the command's flags alone; the separator then is an argument.
func splitExec(args []string) (node string, argv []string, err error) {
	node, argv = args[0], args[1:]
	if argv[0] == "--" {
		argv = argv[1:]
	}
	if len(argv) == 0 {
		return "", nil, errors.New("no command given: use lab exec NODE -- COMMAND [ARGUMENT]")
	}
	return node, argv, nil
}

// runOn runs a program on a node. If the program fails, this one exits with its code.
func runOn(ctx context.Context, a *app, node string, r guest.ExecRequest) error {
	c, err := a.cluster()
	if err != nil {
		return err
	}
	m, err := c.Node(node).Machine()
	if err != nil {
		return err
	}
	code, err := m.Exec(ctx, r)
	if err == nil && code != 0 {
		return exitError(code)
	}
	return err
}

func shellCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:               "shell NODE",
		Short:             "Open a shell on a node",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeNodes,
		RunE: func(cmd *cobra.Command, args []string) error {
			terminal := int(os.Stdin.Fd())
			if !term.IsTerminal(terminal) {
				return errors.New("a shell needs a terminal: use `lab exec -i NODE -- sh` for scripts")
			}
			windows, stop := watchWindow(cmd.Context(), terminal)
			defer stop()
			before, err := term.MakeRaw(terminal)
			if err != nil {
				return fmt.Errorf("preparing the terminal: %w", err)
			}
			defer func() { _ = term.Restore(terminal, before) }()
			return runOn(cmd.Context(), a, args[0], guest.ExecRequest{
				Argv: []string{"/bin/bash", "-l"}, Env: []string{"TERM=" + os.Getenv("TERM")},
				Stdin: os.Stdin, Stdout: os.Stdout, Stderr: io.Discard, Terminal: windows,
			})
		},
	}
}

// watchWindow sends the terminal's size now and whenever it changes.
func watchWindow(ctx context.Context, terminal int) (sizes <-chan wire.Window, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	changes := make(chan os.Signal, 1)
	signal.Notify(changes, syscall.SIGWINCH)
	out, done := make(chan wire.Window), make(chan struct{})
	go func() {
		defer close(done)
		for {
			columns, rows, err := term.GetSize(terminal)
			if err != nil {
				columns, rows = 80, 24
			}
			select {
			case out <- wire.Window{Rows: uint16(rows), Columns: uint16(columns)}:
			case <-ctx.Done():
				return
			}
			select {
			case <-changes:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out, func() { signal.Stop(changes); cancel(); <-done }
}
